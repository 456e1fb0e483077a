/**
 * Where the service starts. The pool of threads on which passwords are hashed gets one for each core, unless
 * UV_THREADPOOL_SIZE says how many: a thread that is done with a hash can then begin the next one by itself. It gets two
 * at least, since one may be waiting for a name server.
 *
 * Not an ES module: to load one, Node.js 20 uses the pool, which is made at its first use.
 */
const { availableParallelism } = process.getBuiltinModule('node:os')

process.env.UV_THREADPOOL_SIZE ??= String(Math.max(2, availableParallelism()))
import('./server.ts')
