// Runs once before all tests: builds the service, which tests import from dist/, and prepares the databases. Both run
// in child processes where tap measures no coverage.
import { execFileSync } from 'node:child_process'

const options = { env: { ...process.env, _TAPJS_PROCESSINFO_COVERAGE_: '0' }, stdio: 'inherit' as const }
execFileSync('npm', ['run', '--silent', 'build'], options)
execFileSync(process.execPath, [...process.execArgv, 'test/prepare-databases.ts'], options)
