import {
  BLOG, COMPRESSED, EVENTS, EVENTS_WHILE_WRITING, LISTS, LOGIN, ME, REGISTER_ONE,
} from './cases.ts'
import { ARGON2, HTTP, PLAIN_INSERT } from './floors.ts'
import type { Findings } from './measure.ts'
import { EXPRESS } from './peers.ts'
import { BIG_ANSWERS } from './sections/big-answers.ts'
import { AFTER_COMMIT, growthName } from './sections/growth.ts'
import { BESIDE_LOGINS } from './sections/logins.ts'
import type { Soak } from './sections/memory.ts'
import { SERVICE } from './service.ts'
import { percentile } from './statistics.ts'
import { figure } from './tables.ts'

/** What the service is to reach, and what it did. */
export interface Goal {
  goal: string
  measured: string
  needed: string
  /** `undefined` when it was not measured. */
  reached?: boolean
}

/** Judges what was found. */
export function judgeGoals (findings: Findings, soak: Soak | undefined): Goal[] {
  const { facts } = findings
  const rate = (...key: Parameters<Findings['find']>) => findings.find(...key)?.rate ?? NaN
  /** How much the service does of what another does: the middle one of the shares in each turn. */
  const share = (name: string, target = HTTP) => {
    const [service, others] = [SERVICE, target].map(target => findings.find(name, target)?.rates ?? [])
    return percentile(service!.map((rate, turn) => rate / others![turn]!), 50)
  }
  const writing = EVENTS_WHILE_WRITING.name
  const cpu = (name: string) => findings.find(name, SERVICE)?.cpu ?? NaN
  const afterCommit = (factor: number) => findings.find(AFTER_COMMIT, SERVICE, 1, growthName(factor))?.p50 ?? NaN
  const beside = findings.find(BESIDE_LOGINS, SERVICE)?.p99 ?? NaN

  return [
    ...LISTS.map(({ name }) => atLeast(`${name}, nobody writing`, share(name), 0.85, 'of node:http')),
    atLeast(writing, share(writing), 0.6, 'of node:http'),
    atLeast(writing, rate(writing, SERVICE) / rate(writing, EXPRESS), 100, 'times Express + Prisma'),
    atMost(
      `${AFTER_COMMIT}, 1,000,000 registrations`, afterCommit(100) / afterCommit(1), 1.5, 'times the p50 at 10,000'
    ),
    holds('lists answer If-None-Match with 304 and no body', facts['304 without a body']),
    holds('lists in gzip and br', facts['gzip and br']),
    atMost(
      `${COMPRESSED.name}: compressed once`, cpu(COMPRESSED.name) / cpu(EVENTS.name), 2, 'times the CPU of plain'
    ),
    atLeast(`${BLOG.name}, nobody writing`, share(BLOG.name), 0.7, 'of node:http'),
    atLeast(ME.name, share(ME.name, EXPRESS), 8, 'times Express + Prisma'),
    atLeast(REGISTER_ONE.name, share(REGISTER_ONE.name, PLAIN_INSERT), 0.25, 'of pgbench with the plain insert'),
    holds('every 201 is a row', facts['every 201 is a row']),
    holds('counts are exact', facts['counts are exact']),
    atLeast(
      LOGIN.name, Math.min(...Object.values(ARGON2).map(target => share(LOGIN.name, target))), 0.9, 'of argon2 alone'
    ),
    atMost(`${BESIDE_LOGINS}, p99`, beside, 50, 'ms'),
    atMost('memory at rest after it all', number(facts['at rest, MB']), 250, 'MB'),
    atMost(
      `memory over ten minutes of load${soak ? ` (${soak.date})` : ''}`, soak?.growth ?? NaN, 1.1, 'times the beginning'
    ),
    ...BIG_ANSWERS.flatMap(({ name }) => [
      atMost(`${name}: longest pause`, number(facts[`${name}: longest pause, ms`]), 50, 'ms'),
      atMost(
        `${name}: memory`, number(facts[`${name}: memory more, MB`]) / number(facts[`${name}: megabytes`]), 3,
        'times the answer'
      ),
    ]),
  ]
}

function atLeast (goal: string, measured: number, needed: number, unit: string): Goal {
  return {
    goal,
    measured: shown(measured, unit),
    needed: `at least ${needed}`,
    reached: Number.isNaN(measured) ? undefined : measured >= needed,
  }
}

function atMost (goal: string, measured: number, needed: number, unit: string): Goal {
  return {
    goal,
    measured: shown(measured, unit),
    needed: `at most ${needed}`,
    reached: Number.isNaN(measured) ? undefined : measured <= needed,
  }
}

function holds (goal: string, fact: unknown): Goal {
  return {
    goal,
    measured: fact === undefined ? 'not measured' : fact ? 'yes' : 'no',
    needed: 'yes',
    reached: fact as boolean | undefined,
  }
}

function shown (measured: number, unit: string) {
  return Number.isNaN(measured) ? 'not measured' : `${figure(measured)} ${unit}`
}

function number (fact: unknown) {
  return fact === undefined ? NaN : Number(fact)
}
