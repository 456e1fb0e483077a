import { toColumns } from '#lib/database/columns.js'
import t from '../../suite.ts'

t.test('Fields in any order become all columns in one order, and other fields are ignored', async t => {
  const body = JSON.parse('{ "other": 1, "onlineUrl": null, "__proto__": 2, "place": "x" }')
  const columns = toColumns(body, ['place', 'onlineUrl', 'capacity'])
  t.equal(JSON.stringify(columns), '{"place":"x","online_url":null,"capacity":null}')
})
