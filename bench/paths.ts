import { fileURLToPath } from 'node:url'

/** The project's folder. */
export const root = fileURLToPath(new URL('.', import.meta.resolve('#package.json')))

/** A file of the benchmark as it is in the repository. */
export const source = (path: string) => `${root}bench/${path}`

/** A file of the service or of the benchmark as the compiler made it. */
export const script = (path: string) => `${root}dist/${path}`
