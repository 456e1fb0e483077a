// Podman with images, containers and networks of its own. No registry is needed: the base images are made of Debian's
// and npm's packages, and kept in the temporary folder for the next run.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import type { Test } from 'tap'

import { PNG } from '../fixtures.ts'
import { isInstalled } from '../process.ts'

const exec = promisify(execFile)

const PROGRAMS = ['podman', 'runc', 'podman-compose', 'debootstrap']

/** Base images and the engine's state. */
const CACHE = join(tmpdir(), 'community-platform-container')

/** The certificates that npm trusts, in a container. systemd hides /tmp. */
export const CERTIFICATES = '/etc/npm-certificates'

/** The folder with the sources of the base images. */
const IMAGES = 'test/container/images'

/** An image that is made of Debian's and npm's packages: the base images of compose.yaml, or a machine with systemd. */
export type Image = 'node' | 'postgres' | 'machine'

export const MACHINE_IMAGE = 'localhost/machine'
const NODE_IMAGE = 'docker.io/library/node:24-slim'
const POSTGRES_IMAGE = 'docker.io/library/postgres:18'

/** The file system of containers, which does not support nested mounts of the same type. */
const OVERLAYFS = 0x794c7630

/** The files that compose.yaml needs: the files of the image (see .dockerignore) and compose.yaml. */
const CONTEXT = [
  '.dockerignore', 'Dockerfile', 'bin', 'compose.yaml', 'lib', 'migrations', 'package-lock.json',
  'package.json', 'patches', 'plugins', 'routes', 'tsconfig.json',
]

/** The exit and output of a program. `output` combines both streams. */
export interface Result {
  code: number | null
  stdout: string
  output: string
}

interface Engine {
  /** A copy of compose.yaml and all that it needs, gone when the test ends. */
  context: string
  /** Options of `podman build` that let its `npm ci` reach the registry as npm does on this machine. */
  buildOptions: string[]
  /** Runs podman to its end. */
  podman (...args: string[]): Promise<Result>
  /** Runs podman and returns its output. Throws when it fails. */
  succeed (...args: string[]): Promise<string>
  /** Runs podman-compose in the context. */
  compose (...args: string[]): Promise<Result>
  /** Runs a script of bash in the context. It stops at the first error. */
  shell (script: string): Promise<Result>
}

/** Starts the engine with these images. Everything that is made with it is removed when the test ends. */
export async function startEngine (t: Test, images: Image[] = ['node', 'postgres']): Promise<Engine> {
  const missing = await missingPrograms()
  if (missing.length > 0) t.bailout(`${missing.join(', ')} missing: sudo apt-get install ${PROGRAMS.join(' ')}`)
  if (process.getuid!() !== 0) t.bailout('debootstrap needs root: sudo npm run test:container')

  await mkdir(CACHE, { recursive: true, mode: 0o700 })
  // Leftovers of a run that was killed.
  for (const name of await readdir(CACHE)) {
    if (name.startsWith('run-')) await rm(join(CACHE, name), { recursive: true, force: true })
  }
  const folder = await mkdtemp(join(CACHE, 'run-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const environment = { ...process.env, ...await configure() }

  async function run (program: string, args: string[], cwd?: string): Promise<Result> {
    const child = spawn(program, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], cwd })
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code, stdout, output: stdout + stderr }
  }
  const podman = (...args: string[]) => run('podman', args)
  const succeed = async (...args: string[]) => {
    const { code, stdout, output } = await podman(...args)
    if (code !== 0) throw new Error(`podman ${args.join(' ')}: exit code ${code}\n${output}`)
    return stdout.trim()
  }

  // Runs last, after containers, pods and networks were removed. Also removes leftovers of a killed run.
  const clean = async () => {
    await podman('pod', 'rm', '--all', '--force')
    await podman('rm', '--all', '--force', '--time', '0', '--volumes')
    await podman('volume', 'prune', '--force')
    await podman('network', 'prune', '--force')
    await podman('rmi', '--force', 'community-platform')
    await podman('image', 'prune', '--force')
  }
  await clean()
  t.teardown(clean)
  await makeImages({ podman, succeed }, t, folder, images)

  const context = join(folder, 'community-platform')
  await mkdir(context)
  for (const path of CONTEXT) await cp(path, join(context, path), { recursive: true })
  // The local base images have the names of the pinned images, but different digests.
  for (const file of ['Dockerfile', 'compose.yaml']) {
    await writeFile(join(context, file), (await readFile(file, 'utf8')).replaceAll(/@sha256:[0-9a-f]{64}/g, ''))
  }
  const buildOptions = ['--format', 'docker', '--network', 'host', ...await npmOptions(folder)]
  return {
    context,
    buildOptions,
    podman,
    succeed,
    compose: (...args) => run('podman-compose', args, context),
    shell: script => run('bash', ['-ec', script], context),
  }
}

async function missingPrograms () {
  const found = await Promise.all(PROGRAMS.map(isInstalled))
  return PROGRAMS.filter((_program, index) => !found[index])
}

/** Writes the configuration of the engine. Returns the environment that has podman read it. */
async function configure () {
  const { type } = await statfs(CACHE)
  const CONTAINERS_CONF = join(CACHE, 'containers.conf')
  const CONTAINERS_STORAGE_CONF = join(CACHE, 'storage.conf')
  // The default limits are higher than some machines allow.
  await writeFile(CONTAINERS_CONF, `
    [engine]
    runtime = "runc"
    cgroup_manager = "cgroupfs"
    events_logger = "file"
    [containers]
    default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
    [network]
    network_config_dir = "${join(CACHE, 'networks')}"
  `)
  await writeFile(CONTAINERS_STORAGE_CONF, `
    [storage]
    driver = "${type === OVERLAYFS ? 'vfs' : 'overlay'}"
    graphroot = "${join(CACHE, 'storage')}"
    runroot = "${join(CACHE, 'state')}"
  `)
  return { CONTAINERS_CONF, CONTAINERS_STORAGE_CONF }
}

/** Makes the images that are not there from an earlier run. */
async function makeImages (
  { podman, succeed }: Pick<Engine, 'podman' | 'succeed'>, t: Test, folder: string, images: Image[]
) {
  const isThere = async (image: string) => (await podman('image', 'exists', image)).code === 0
  const build = async (image: string, file: string, context: string) => {
    t.comment(`makes ${image}`)
    await succeed(
      'build', '--format', 'docker', '--network', 'host', '--tag', image, '--file', join(IMAGES, file), context
    )
  }
  const bootstrap = async (image: string, ...options: string[]) => {
    if (await isThere(image)) return
    t.comment(`makes ${image}`)
    const root = join(folder, 'debian')
    await exec('debootstrap', [...options, root])
    await exec('tar', ['--directory', root, '--create', '--file', `${root}.tar`, '.'])
    await succeed('import', `${root}.tar`, image)
    await Promise.all([root, `${root}.tar`].map(path => rm(path, { recursive: true })))
  }
  // What Debian's installer puts on every machine.
  if (images.includes('machine')) await bootstrap(MACHINE_IMAGE, '--include=systemd-sysv,ca-certificates', 'trixie')
  if (images.includes('node') || images.includes('postgres')) {
    await bootstrap('localhost/debian', '--variant=minbase', '--include=ca-certificates', 'bookworm')
  }
  if (images.includes('node') && !await isThere(NODE_IMAGE)) {
    const context = join(folder, 'node-image')
    for (const [name, spec] of [['node', `node-linux-${process.arch}@24`], ['npm', 'npm@11']] as const) {
      await mkdir(join(context, name), { recursive: true })
      const { stdout } = await exec('npm', ['pack', '--silent', '--pack-destination', context, spec])
      const file = join(context, stdout.trim())
      await exec('tar', ['--directory', join(context, name), '--strip-components=1', '--extract', '--file', file])
    }
    await build(NODE_IMAGE, 'node.Dockerfile', context)
  }
  // Its layers are cached.
  if (images.includes('postgres')) await build(POSTGRES_IMAGE, 'postgres.Dockerfile', IMAGES)
}

/** Mounts npm's configuration and trusted certificates during a build. The image does not contain them. */
async function npmOptions (folder: string) {
  const get = async (key: string) => (await exec('npm', ['config', 'get', key], { cwd: tmpdir() })).stdout.trim()
  const files = await Promise.all(['globalconfig', 'userconfig'].map(get))
  const contents = await Promise.all(files.map(file => readFile(file, 'utf8').catch(() => '')))
  const certificates = [await get('cafile'), process.env.NODE_EXTRA_CA_CERTS].find(file => file && file !== 'null')
  const path = join(folder, 'npmrc')
  const options = ['--volume', `${path}:/root/.npmrc:ro`]
  if (certificates) {
    await copyFile(certificates, join(folder, 'certificates'))
    contents.push(`cafile=${CERTIFICATES}`)
    options.push('--volume', `${join(folder, 'certificates')}:${CERTIFICATES}:ro`)
  }
  await writeFile(path, contents.join('\n'), { mode: 0o600 })
  return options
}

/** Waits until a check holds. Throws when it takes more than a minute. */
export async function until (check: () => Promise<boolean>) {
  const deadline = performance.now() + 60_000
  while (!await check()) {
    if (performance.now() > deadline) throw new Error('Not within a minute')
    await sleep(200)
  }
}

/** The status of a response, 0 without one. */
export const statusOf = (url: string, init?: RequestInit) =>
  fetch(url, { ...init, signal: AbortSignal.timeout(5000) }).then(({ status }) => status, () => 0)

/** Registers an account, and uploads a picture with it. Returns the status of both responses. */
export async function useService (origin: string) {
  const registered = await fetch(`${origin}/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      email: 'ada@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace',
    }),
  })
  const { token } = await registered.json() as { token: string }
  const uploaded = await statusOf(`${origin}/me/pictures`, {
    method: 'POST', headers: { 'content-type': 'image/png', authorization: `Bearer ${token}` }, body: PNG,
  })
  return [registered.status, uploaded]
}
