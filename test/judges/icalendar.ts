// The calendars of mails about an event, as a calendar takes them in: https://icalendar.readthedocs.io
import { writeInvitation } from '#lib/icalendar.js'
import { findVersion, type Judge, run } from './judge.ts'

const EVENT = {
  id: '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b',
  title: 'Chess Night; “Läufer”, Springer',
  description: 'Ten games at once,\nagainst anyone who comes. '.repeat(20),
  date: '2026-10-25T00:30:00.000Z',
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
  club: 'Chess Club',
  sequence: 0,
}
const MOVED = { ...EVENT, date: '2026-10-26T18:30:00.000Z', sequence: 1 }
const { description, ...CANCELLED } = { ...MOVED, sequence: 2 }

/** Takes in the calendars of the arguments, and prints the events that there are after each of them. */
const READER = `
import json, sys
from icalendar import Calendar
events = {}
for text in sys.argv[1:]:
    calendar = Calendar.from_ical(text)
    [event] = calendar.walk('VEVENT')
    uid = str(event['UID'])
    assert not event.errors, event.errors
    if uid not in events or events[uid][0] < event['SEQUENCE']:
        events[uid] = [int(event['SEQUENCE']), event['DTSTART'].dt.isoformat(), str(event['SUMMARY'])]
    if calendar['METHOD'] == 'CANCEL':
        del events[uid]
    print(json.dumps(list(events.values())))
`

const EXPECTED = [
  [[0, '2026-10-25T00:30:00+00:00', EVENT.title]],
  [[1, '2026-10-26T18:30:00+00:00', EVENT.title]],
  [],
]

/** Reads a registration, a change and a cancellation in turn. They leave one event, moved, and then none. */
export const icalendar: Judge = {
  program: 'icalendar',
  install: 'apt-get install python3-icalendar',
  version: async setting =>
    findVersion((await run(setting, 'python3', ['-c', 'import icalendar; print(icalendar.__version__)'])).stdout),

  async run (setting) {
    const link = 'https://app.example.org/events'
    const calendars = [
      writeInvitation(EVENT, 'PUBLISH', link), writeInvitation(MOVED, 'PUBLISH', link),
      writeInvitation(CANCELLED, 'CANCEL', link),
    ]
    const { stdout, output } = await run(setting, 'python3', ['-c', READER, ...calendars])
    const states = stdout.trim().split('\n')
    const findings = EXPECTED.map(state => JSON.stringify(state))
      .flatMap((state, n) => JSON.stringify(JSON.parse(states[n] || 'null')) === state ? [] : [`${n}: ${output}`])
    return { subject: 'the calendars of mails', findings }
  },
}
