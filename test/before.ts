// Runs once before all tests: prepares the databases, in a child process where tap measures no coverage.
import { execFileSync } from 'node:child_process'

const env = { ...process.env, _TAPJS_PROCESSINFO_COVERAGE_: '0' }
execFileSync(process.execPath, ['dist/test/prepare-databases.js'], { env, stdio: 'inherit' })
