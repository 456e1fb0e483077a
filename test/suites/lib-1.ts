import { runSuite } from '../suite.ts'

await runSuite('lib-1')
