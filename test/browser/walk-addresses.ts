// Addresses of the example app that people change, cut or keep for too long.
import { entry, notified, startExample } from '../example.ts'
import t from '../suite.ts'

const { origin, example, sql, walk, signIn, tokenOf, send } = await startExample()

walk('A wrong address is not found, and a wrong page of a list is a page that exists', {
  refusals: ['GET /agenda 400', 'GET /agenda/xyz 404', 'GET /blogs/xyz 404', 'GET /club-pages/xyz 404'],
}, async (t, page) => {
  const shows = async (path: string, title: string, words = '') => {
    await page.goto(origin + path)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    t.match(await page.textContent('main'), words, path)
  }
  const wrong = 'The link may be wrong or outdated. Go to the home page.'
  await shows('/events?cursor=cut', 'Page not found', wrong)
  await shows('/events/%FF', 'Page not found', wrong)
  await shows('/events/%F', 'Page not found', wrong)
  await shows('/events/xyz', 'Page not found', 'Event not found. It may be deleted.')
  await shows('/blogs/xyz', 'Page not found', 'Blog not found. It may be deleted.')
  await shows('/clubs/xyz', 'Page not found', 'Club not found. It may be deleted.')
  await shows('/events?club=xyz', 'Page not found', 'Club not found. It may be deleted.')
  for (const year of ['300000', '-5', '50', '1.5', 'x']) {
    await shows(`/events?year=${year}`, 'Events', 'Everyone is welcome.')
  }
  for (const number of ['x', '0', '-1', '1.5', '1e99']) {
    await shows(`/testimonials?page=${number}`, 'Testimonials', 'Page 1 of 2')
  }
  await shows('/testimonials?page=99', 'Testimonials', 'Page 2 of 2')
})

walk('After the last entry of a page was deleted, the page before is shown', {}, async (t, page) => {
  const admin = await tokenOf('admin@demo.example.org')
  for (let n = 0; n < 5; n++) {
    await send('POST', '/testimonials', admin, { name: `Voice ${n}`, content: 'I learned a lot', batchYear: 1990 - n })
  }
  const [{ count }] = await sql`SELECT count(*)::integer FROM testimonials` as unknown as [{ count: number }]
  t.equal(count, 11)
  await signIn(page, 'admin', { to: '/admin/testimonials?page=2' })
  await page.getByRole('listitem').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'has been deleted.')
  t.equal(await page.locator('.rows > li').count(), 10)

  await page.goto(`${origin}/admin/users?page=7`)
  await entry(page, 'Yuki Tanaka').waitFor()
})

t.test('A preview shows the title of an event as it is', async t => {
  const title = "Win $& or $' or $` <b>"
  const { event } = await send('POST', '/events', await tokenOf('head@demo.example.org'), {
    title, description: 'A talk about prices', data: '2031', imageUrl: 'data:image/png,',
  })
  const html = await (await fetch(`${origin}/events/${event.id}`)).text()
  const shown = "Win $&#38; or $' or $` &#60;b&#62;"
  t.match(html, `<title>${shown}</title>`)
  t.match(html, `<meta property="og:title" content="${shown}">`)
  t.equal(html.split('<script').length, 3)
})

t.test('The start tells where the app, the documentation and emails are', async t => {
  t.match(example.output.stdout, `The example app runs at   ${origin}\n`)
  const [, docs] = /The API is documented at {2}(\S+)/.exec(example.output.stdout)!
  t.equal((await fetch(docs!)).status, 200)
  t.match(example.output.stdout, /Emails are files in {7}\S+mail\n/)
})
