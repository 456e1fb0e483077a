// An OpenID provider that is independent of the provider in the tests: https://babelouest.github.io/glewlwyd/
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { copyFile, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { serveFrontend } from '../frontend.ts'
import { launch } from '../chromium.ts'
import { startProcess } from '../faults/programs.ts'
import { freePort } from '../process.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'
import { startTarget } from './target.ts'

/** Files of Debian's package: the schema of its database with an admin, and its pages with their configuration. */
const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3'
const PAGES = '/usr/share/glewlwyd/webapp'
const PAGES_CONFIG = '/etc/glewlwyd/config-2.7.json/config.json'
const ADMIN = { username: 'admin', password: 'password' }

/** It takes client credentials literally, without decoding them (RFC 6749, § 2.3.1). */
const CLIENT = { IDP_CLIENT_ID: 'community-platform', IDP_CLIENT_SECRET: 'a-client-secret-of-the-judges' }

/** Timeout of each step of a sign-in, in milliseconds. */
const TIMEOUT = 15_000

/** The claims of a user, besides common ones. */
const CLAIMS = ['given_name', 'family_name', 'email_verified', 'picture']

const PEOPLE = [
  { given_name: 'Ada', family_name: 'Lovelace', email: 'ada@example.org', email_verified: '1' },
  // A user of the demo data, whose account is linked.
  { given_name: 'Somebody', family_name: 'Else', email: 'student@demo.example.org', email_verified: '1' },
  { given_name: 'Mallory', family_name: 'Mall', email: 'admin@demo.example.org', email_verified: '0' },
].map(person => ({ ...person, username: person.given_name.toLowerCase(), password: 'provider password' }))

/** Signs in with Chromium, from the link in a browser app until the app shows the user. */
export const glewlwyd: Judge = {
  program: 'glewlwyd',
  install: 'apt-get install glewlwyd dbconfig-sqlite3 sqlite3 chromium',
  version: async setting => findVersion((await run(setting, 'glewlwyd', ['--version'])).output),

  async run (setting) {
    const { scope, directory } = setting
    const port = String(await freePort())
    const service = `http://localhost:${port}`
    const IDP_REDIRECT_URI = `${service}/auth/google/callback`
    const { issuer } = await startGlewlwyd(setting, IDP_REDIRECT_URI)
    const frontend = await serveFrontend(scope, service, 'app.localhost')
    const { log } = await startTarget(scope, directory, {
      ...CLIENT, PORT: port, IDP_REDIRECT_URI, IDP_ISSUER: issuer, FRONTEND_URL: frontend.origin,
    })
    const browser = await launch(scope)

    /** The last page that the user sees. */
    async function signIn ({ username, password }: typeof PEOPLE[number]) {
      const context = await browser.newContext()
      context.setDefaultTimeout(TIMEOUT)
      const page = await context.newPage()
      await page.goto(frontend.origin)
      await page.click('text=Sign in')
      await page.fill('#username', username)
      await page.fill('#password', password)
      await page.click('#loginbut')
      await page.check('#grant-email')
      await page.check('#grant-profile')
      await page.click('text=Grant access')
      await page.click('text=Continue')
      await page.waitForURL(url => url.href.startsWith(service) || url.origin === frontend.origin)
      await page.waitForSelector('h1:not(:empty)', { timeout: 3000 }).catch(() => {})
      const seen = (await page.locator('body').innerText()).trim().replace(/\s+/g, ' ')
      await context.close()
      return seen
    }

    const expected = ['Hello Ada Lovelace /events?page=2', 'Hello Yuki Tanaka /events?page=2', 'No email in profile']
    const findings: string[] = []
    for (const [index, person] of PEOPLE.entries()) {
      const seen = await signIn(person).catch(String)
      console.log(`  ${person.email}: ${seen}`)
      if (seen !== expected[index]) findings.push(`${person.email} does not see “${expected[index]}”\n${await log()}`)
    }
    return { subject: 'the whole sign-in in Chromium of a new account, a linked one and an unverified email', findings }
  },
}

/** Starts it on a database of its own, with the users, and the service as a client. */
async function startGlewlwyd ({ scope, directory }: Setting, redirectUri: string) {
  const origin = `http://localhost:${await freePort()}`
  const database = join(directory, 'glewlwyd.db')
  await promisify(execFile)('sqlite3', [database, `.read ${SCHEMA}`])
  // Copied, because it serves no links, and the one to the configuration leads to a folder.
  const pages = join(directory, 'pages')
  await cp(PAGES, pages, { recursive: true, dereference: true, filter: source => !source.endsWith('config.json') })
  await copyFile(PAGES_CONFIG, join(pages, 'config.json'))
  await writeFile(join(directory, 'glewlwyd.conf'), configuration(origin, database, pages))
  const isUp = () => fetch(origin).then(() => true, () => false)
  await startProcess(scope, directory, ['glewlwyd', '--config-file', 'glewlwyd.conf'], isUp)

  let cookie = ''
  /** Calls its admin API. Returns the response. */
  async function send (method: string, path: string, body?: object) {
    const response = await fetch(`${origin}/api/${path}`, {
      method,
      headers: { 'content-type': 'application/json', cookie },
      ...body && { body: JSON.stringify(body) },
    })
    if (!response.ok) throw new Error(`glewlwyd returns ${response.status} for ${path}: ${await response.text()}`)
    return response
  }
  cookie = (await send('POST', 'auth', ADMIN)).headers.getSetCookie()[0]!.split(';', 1)[0]!

  const scopes = ['openid', 'email', 'profile']
  for (const name of scopes.slice(1)) {
    await send('POST', 'scope/', { name, display_name: name, password_required: true, password_max_age: 0 })
  }
  await send('PUT', 'mod/user/database', {
    module: 'database',
    name: 'database',
    display_name: 'Database',
    parameters: {
      'use-glewlwyd-connection': true,
      'data-format': Object.fromEntries(CLAIMS.map(name => [name, { read: true, write: true }])),
    },
  })
  await send('PUT', 'mod/user/database/reset')
  for (const person of PEOPLE) {
    await send('POST', 'user/', { ...person, name: person.given_name, enabled: true, scope: scopes })
  }
  const issuer = `${origin}/api/oidc`
  await send('POST', 'mod/plugin/', {
    module: 'oidc', name: 'oidc', display_name: 'OpenID Connect', parameters: parameters(issuer, scopes),
  })
  await send('POST', 'client/', {
    client_id: CLIENT.IDP_CLIENT_ID,
    client_secret: CLIENT.IDP_CLIENT_SECRET,
    name: 'Community',
    confidential: true,
    enabled: true,
    redirect_uri: [redirectUri],
    authorization_type: ['code'],
    token_endpoint_auth_method: ['client_secret_basic'],
    scope: scopes,
  })
  return { issuer }
}

/** The parameters of its OpenID Connect plugin. */
function parameters (issuer: string, scopes: string[]) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return {
    iss: issuer,
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    key: privateKey,
    cert: publicKey,
    'jwks-show': true,
    'access-token-duration': 3600,
    'refresh-token-duration': 3600,
    'code-duration': 600,
    'subject-type': 'public',
    'auth-type-code-enabled': true,
    'allowed-scope': scopes,
    'name-claim': 'mandatory',
    'email-claim': 'mandatory',
    claims: CLAIMS.map(name => ({
      name,
      'user-property': name,
      mandatory: true,
      scope: [],
      ...name === 'email_verified'
        ? { type: 'boolean', 'boolean-value-true': '1', 'boolean-value-false': '0' }
        : { type: 'string' },
    })),
  }
}

function configuration (origin: string, database: string, pages: string) {
  const library = '/usr/lib/glewlwyd'
  const types = { html: 'text/html', css: 'text/css', js: 'application/javascript', json: 'application/json' }
  const settings = {
    bind_address: '127.0.0.1',
    external_url: origin,
    login_url: 'login.html',
    api_prefix: 'api',
    static_files_path: pages,
    log_mode: 'console',
    log_level: 'ERROR',
    cookie_domain: 'localhost',
    admin_scope: 'g_admin',
    profile_scope: 'g_profile',
    user_module_path: `${library}/user`,
    user_middleware_module_path: `${library}/user_middleware`,
    client_module_path: `${library}/client`,
    user_auth_scheme_module_path: `${library}/scheme`,
    plugin_module_path: `${library}/plugin`,
    hash_algorithm: 'SHA512',
  }
  return `
    port = ${new URL(origin).port}
    cookie_secure = 0
    ${Object.entries(settings).map(([name, value]) => `${name} = "${value}"`).join('\n')}
    database = { type = "sqlite3", path = "${database}" }
    static_files_mime_types = (${Object.entries(types).map(([extension, type]) =>
      `{ extension = ".${extension}", mime_type = "${type}", compress = 0 }`).join(', ')})
  `
}
