import { runSuite } from '../suite.ts'

await runSuite()
