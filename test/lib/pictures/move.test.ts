import databaseCommand from '#lib/cli/database.js'
import { build, insert, person } from '../../helper.ts'
import { call } from '../../process.ts'
import t from '../../suite.ts'

const app = await build(t)
const { DATABASE_URL } = app.config
const move = (...args: string[]) => call(databaseCommand, { DATABASE_URL }, { args: ['move-pictures', ...args] })
const succeeded = (stdout: string) => ({ code: 0, signal: null, stdout, stderr: '' })

const ID = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const FROM = 'http://192.0.2.1:3000'
const TO = 'https://api.example.org/v1'

t.test('move-pictures changes the URLs of pictures wherever people have put them, and no others', async t => {
  const { id: authorId } = await person(app)
  const texts = (base: string) => [
    `${base}/pictures/${ID}`, `${base}/pictures/${ID}?width=480`, `![](${base}/pictures/${ID}) ${base}/pictures/${ID}`,
  ]
  const others = [
    `${FROM}/events`, `${FROM}0/pictures/${ID}`, `https://elsewhere.example/pictures/${ID}`, 'data:image/png,x', null,
  ]
  const urls = [...texts(FROM), ...others].sort()
  for (const url of urls) {
    const club = await insert(app, 'clubs', { image_url: url })
    await insert(app, 'events', { image_url: url, club_id: club })
    await insert(app, 'mentors', { image_url: url ?? '', club_id: club })
    await insert(app, 'testimonials', { image_url: url })
    await insert(app, 'blogs', { author_id: authorId, image_url: url, content: url ?? '' })
  }
  const stored = async (table: string, column = 'image_url') =>
    (await app.sql`SELECT ${app.sql(column)} AS url FROM ${app.sql(table)}`).map(({ url }) => url).sort()

  const options = ['--from', `${FROM}/`, '--to', TO]
  t.strictSame(await move(...options, '--dry-run'), succeeded('Would change the pictures of 15 rows\n'))
  t.strictSame(await stored('events'), urls)
  t.strictSame(await move(...options), succeeded('Changed the pictures of 15 rows\n'))
  const moved = [...texts(TO), ...others].sort()
  for (const table of ['clubs', 'events', 'testimonials', 'blogs']) t.strictSame(await stored(table), moved, table)
  t.strictSame(await stored('mentors'), moved.map(url => url ?? '').sort())
  t.strictSame(await stored('blogs', 'content'), moved.map(url => url ?? '').sort())
  t.strictSame(await move(...options), succeeded('Changed the pictures of 0 rows\n'))
})

t.test('move-pictures needs two URLs', async t => {
  for (const [option, args] of [
    ['from', ['--to', TO]], ['to', ['--from', FROM]], ['to', ['--from', FROM, '--to', 'api.example.org']],
  ] as const) {
    const { code, stderr } = await move(...args)
    t.strictSame([code, stderr],
      [1, `move-pictures needs --${option} with an http or https URL (see --help)\n`])
  }
})
