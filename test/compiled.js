// Has Node run test/x.test.ts as test/before.ts compiled it, in dist/test/: a compiler of its own would take every test
// file most of a second.
import * as module from 'node:module'

/** Only what Node is told to run needs this: compiled files import compiled ones. */
const resolve = (specifier, context, next) => next(
  context.parentURL ? specifier : specifier.replace(/(.*)\/test\/(?!before\.)(.*)\.ts$/, '$1/dist/test/$2.js'), context
)

// Node 20 has the second way only.
if (module.registerHooks) module.registerHooks({ resolve })
else module.register(`data:text/javascript,export const resolve = ${encodeURIComponent(resolve)}`)
