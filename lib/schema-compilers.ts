import AjvCompiler from '@fastify/ajv-compiler'
import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { FastifyServerOptions } from 'fastify'

/**
 * Fastify's own compilers of schemas, that compile each schema once: most answers of failures are of a few schemas that
 * all routes share. What is compiled is kept for all apps of the process, so their options must be the same, and so
 * must what their schemas refer to.
 */
export function shareCompiled (): NonNullable<FastifyServerOptions['schemaController']> {
  return {
    compilersFactory: { buildValidator: once(AjvCompiler()), buildSerializer: once(SerializerSelector()) },
  }
}

/** The factory of a compiler, which gives what was compiled before where it is given an equal schema again. */
function once<Options extends unknown[], Route, Compiled> (
  factory: (...options: Options) => (route: Route) => Compiled
) {
  const compiled = new Map<string, Compiled>()
  return (...options: Options) => {
    const compile = factory(...options)
    return (route: Route) => {
      const key = JSON.stringify((route as { schema?: unknown }).schema)
      if (!compiled.has(key)) compiled.set(key, compile(route))
      return compiled.get(key)!
    }
  }
}
