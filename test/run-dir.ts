// Runs before the tests: where there is room in memory, what they keep is kept there.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, statfs, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { RUN_DIR } from './run.ts'

/** Memory as a file system, as Linux has it: making and dropping databases on a disk takes a tenth of the whole run. */
const MEMORY = '/dev/shm'

/** What has to be free there, in bytes: more than twice what a run takes. */
const ROOM = 2 * 2 ** 30

const memory = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
// A run that was cut off has left its folder, or a link to one that the machine forgot when it was started again.
if (!existsSync(RUN_DIR) && memory.bavail * memory.bsize > ROOM) {
  await mkdir(dirname(RUN_DIR), { recursive: true })
  await rm(RUN_DIR, { force: true })
  const dir = await mkdtemp(join(MEMORY, 'community-platform-'))
  await symlink(dir, RUN_DIR)
}
