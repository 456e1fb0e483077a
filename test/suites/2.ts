import { runSuite } from '../suite.ts'

await runSuite(2)
