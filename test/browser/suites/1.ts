import { runSuite } from '../../suite.ts'

// Firefox has its own launcher, and waits for it most of the time.
await runSuite(/^browser\/(?!firefox)[^/]+\.js$/)
