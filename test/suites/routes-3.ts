import { runSuite } from '../suite.ts'

await runSuite('routes-3')
