import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import { LISTS } from './cases.ts'
import { addEvents, type Fixture } from './fixture.ts'
import { get } from './http.ts'
import type { Server } from './programs.ts'
import { holds, type Results } from './results.ts'

const DECODE = { gzip: gunzipSync, br: brotliDecompressSync }

/** Checks that each list has a 304 without a body, and both content codings. */
export async function checkLists (results: Results, { url }: Server) {
  let notModified = true
  let coded = true
  for (const path of LISTS.map(({ name }) => name.replace('GET ', url))) {
    const { headers: { etag = '' }, body: plain } = await get(path)
    const { status, body } = await get(path, { 'if-none-match': etag })
    if (status !== 304 || body.length > 0) notModified = false
    for (const encoding of ['gzip', 'br'] as const) {
      const { headers, body } = await get(path, { 'accept-encoding': encoding })
      if (headers['content-encoding'] !== encoding || !DECODE[encoding](body).equals(plain)) coded = false
    }
  }
  results.goals['lists respond to If-None-Match with 304 and no body'] = [holds(notModified)]
  results.goals['lists in gzip and br'] = [holds(coded)]
}

/** Registers 1,000 students concurrently, 100 of them twice. Checks that the rows are those of the 201s. */
export async function checkRegistrations (results: Results, fixture: Fixture, { url }: Server) {
  const [event] = await addEvents(fixture, 1)
  const students = fixture.students.slice(0, 1000)
  const statuses: number[] = []
  const created: string[] = []
  await Promise.all([...students, ...students.slice(0, 100)].map(async token => {
    const response = await fetch(`${url}/events/${event}/register`, {
      method: 'POST', headers: { authorization: `Bearer ${token}` },
    })
    const { registration } = await response.json() as { registration?: { id: string } }
    statuses.push(response.status)
    if (registration) created.push(registration.id)
  }))
  const rows = await fixture.sql<{ id: string }[]>`SELECT id FROM event_registrations WHERE event_id = ${event!}`
  const count = (status: number) => statuses.filter(each => each === status).length
  const isSame = String(rows.map(({ id }) => id).toSorted()) === String(created.toSorted())
  results.goals['every 201 is a row'] = [holds(isSame && count(201) === 1000 && count(400) === 100)]
}

/** Compares the counts in the lists with the rows, for every event and mentor. */
export async function checkCounts (results: Results, { sql }: Fixture, { url }: Server) {
  const rows = await sql<{ id: string, count: number }[]>`
    SELECT events.id, count(user_id)::int
    FROM events LEFT JOIN event_registrations ON event_id = events.id GROUP BY events.id
    UNION ALL
    SELECT mentors.id, count(user_id)::int
    FROM mentors LEFT JOIN mentor_likes ON mentor_id = mentors.id GROUP BY mentors.id
  `
  const list = async (path: string) => JSON.parse(String((await get(url + path)).body))
  const { events } = await list('/events?limit=1000000') as { events: { id: string, registrationCount: number }[] }
  const { mentors } = await list('/mentors') as { mentors: { id: string, likeCount: number }[] }
  const shown = new Map([
    ...events.map(({ id, registrationCount }) => [id, registrationCount] as const),
    ...mentors.map(({ id, likeCount }) => [id, likeCount] as const),
  ])
  const exact = rows.length === shown.size && rows.every(({ id, count }) => shown.get(id) === count)
  results.goals['counts are exact'] = [holds(exact)]
}
