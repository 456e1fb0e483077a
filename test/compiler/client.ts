// Compiles programs with the client that its types allow or reject. Not part of `npm test`, because compiling takes
// seconds; run by `npm run test:client`.
import { resolve } from 'node:path'

import t from 'tap'
import ts from 'typescript'

import { createProgram } from '../typescript.ts'

/** Programs, and the error of the compiler where there must be one. */
const PROGRAMS: Record<string, [lines: string, refused?: RegExp]> = {
  'a query, and fields of its response': [`
    const { data, error } = await client.GET('/events', { params: { query: { limit: '3', sort: 'asc' } } })
    if (!data) throw new Error(error.message)
    const titles: string[] = data.events.map(event => event.title)
    const heads: (string | null)[] = data.events.map(event => event.club.imageUrl)
    console.log(titles, heads, data.pagination.pages + 1)`],
  'a body, and a path parameter': [`
    const { data } = await client.POST('/events', {
      body: { title: 'Chess Night', description: 'Ten games at once', data: '2026-01-31T09:30:00.000Z' },
    })
    if (data) await client.DELETE('/events/{id}', { params: { path: { id: data.event.id } } })`],
  'a schema by its name': [`
    const role: Schemas['Role'] = 'STUDENT'
    const show = (event: Schemas['Event']) => event.date
    console.log(role, show)`],
  'an upload': [`
    const upload = async (file: File) => {
      const { data } = await client.POST('/me/pictures', { body: file })
      return data?.picture.url
    }
    console.log(upload)`],
  'the texts of an error': [`
    const { error, response } = await client.POST('/mentors/{mentorId}/like', { params: { path: { mentorId: 'x' } } })
    if (error && response.status === 404) console.log(error.message.toUpperCase())`],

  'a loop over pages': [`
    const titles: string[] = []
    for await (const { events } of client.pages('/agenda', { params: { query: { limit: '50' } } })) {
      titles.push(...events.map(event => event.title))
    }`],
  'a text': [`
    const { data } = await client.GET('/exports/users.csv')
    console.log(data?.split('\\r\\n'))`],

  'pages of a list without a cursor': [
    "client.pages('/clubs')", /Argument of type '"\/clubs"' is not assignable/],
  'an upload of text': [
    "await client.POST('/me/pictures', { body: 'a picture' })", /'string' is not assignable to type/],
  'a path that there is not': [
    "await client.GET('/event', {})", /Argument of type '"\/event"' is not assignable/],
  'a method that a path does not have': [
    "await client.DELETE('/clubs', {})", /Argument of type '"\/clubs"' is not assignable/],
  'a field that a body does not have': [
    "await client.PUT('/events/{id}', { params: { path: { id: 'x' } }, body: { date: '2026-01-31' } })",
    /'date' does not exist in type/],
  'a field beside those that a body has': [
    "await client.POST('/auth/login', { body: { email: 'ada@example.org', password: 'x', role: 'ADMIN' } })",
    /'role' does not exist in type/],
  'a query parameter that there is not': [
    "await client.GET('/events', { params: { query: { club: 'x' } } })", /'club' does not exist in type/],
  'a field of another type': [
    "await client.POST('/testimonials', { body: { name: 'Ada', content: 'Fine', batchYear: '2026' } })",
    /'string' is not assignable to type 'number'/],
  'a body without a field that it needs': [
    "await client.POST('/auth/login', { body: { email: 'ada@example.org' } })", /Property 'password' is missing/],
  'no body at all': [
    "await client.POST('/auth/login', {})", /Property 'body' is missing/],
  'no path parameter': [
    "await client.POST('/events/{eventId}/register', {})", /Property 'params' is missing/],
  'another path parameter': [
    "await client.DELETE('/events/{id}', { params: { path: { eventId: 'x' } } })", /'eventId' does not exist in type/],
  'a word that a parameter cannot be': [
    "await client.GET('/events', { params: { query: { sort: 'up' } } })", /'"up"' is not assignable/],
  'a field that a response does not have': [
    "const { data } = await client.GET('/events'); data?.events[0]?.name", /Property 'name' does not exist/],
  'a response that may be undefined': [
    "const { data } = await client.GET('/clubs'); data.clubs", /'data' is possibly 'undefined'/],
  'a field that may be null': [
    "const { data } = await client.GET('/auth/me'); data?.user.club.name", /is possibly 'null'/],
  'a token that is no text': [
    'createClient({ token: 7 })', /'number' is not assignable to type/],
}

const nameOf = (index: number) => resolve(`client/program-${index}.ts`)
const sources = new Map(Object.values(PROGRAMS).map(([lines], index) => [nameOf(index), `
  import { createClient, type Schemas } from './index.js'
  const client = createClient({ baseUrl: 'https://api.example.org', token: () => localStorage.getItem('token') })
  export async function main () { ${lines} }
  export type Used = Schemas
`]))
const program = createProgram(sources)

Object.entries(PROGRAMS).forEach(([what, [, refused]], index) => {
  t.test(`The types ${refused ? 'reject' : 'allow'} ${what}`, async t => {
    const diagnostics = ts.getPreEmitDiagnostics(program, program.getSourceFile(nameOf(index)))
    const messages = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    if (!refused) return t.strictSame(messages, [])
    t.equal(messages.length, 1)
    t.match(messages[0], refused)
  })
})
