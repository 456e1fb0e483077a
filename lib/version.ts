import { createRequire } from 'node:module'

/** The version of the service, as package.json has it. */
export const VERSION: string = createRequire(import.meta.url)('#package.json').version
