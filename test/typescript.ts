import ts from 'typescript'

/** Compiles sources, by their absolute paths, with the strict options of an app. They need not exist as files. */
export function createProgram (sources: ReadonlyMap<string, string>) {
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile } = host
  return ts.createProgram([...sources.keys()], options, Object.assign(host, {
    fileExists: (name: string) => sources.has(name) || fileExists(name),
    readFile: (name: string) => sources.get(name) ?? readFile(name),
  }))
}
