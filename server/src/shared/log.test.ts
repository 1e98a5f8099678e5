import { expect, test } from 'vitest'
import { fail } from '../kernel/errors.ts'
import type { Outcome } from '../kernel/exchange.ts'
import type { Operation } from '../kernel/operation.ts'
import { makeToken } from './identity/tokens.ts'
import { createLog, type LogLevel, logOutcome } from './log.ts'
import { lineMax, redactLine } from './redaction.ts'

function capture(level: LogLevel = 'trace', pretty = false) {
  const lines: string[] = []
  const log = createLog({ level, pretty, destination: { write: (line: string) => void lines.push(line) } })
  return { log, lines, text: () => lines.join(''), parsed: () => lines.map((line) => JSON.parse(line)) }
}

const canary = 'canary-7f3a-must-not-appear'
const token = makeToken('live').text

test('no secret is written, wherever it hides', () => {
  const { log, lines, text, parsed } = capture()
  const pgError = Object.assign(new Error('duplicate key value'), {
    code: '23505',
    constraint: 'contact_email',
    detail: `Key (email)=(${canary}) already exists.`,
    where: canary,
    config: { headers: { Authorization: `Bearer ${canary}` } },
  })
  log.info({ authorization: canary, Authorization: canary, 'Set-Cookie': [canary], cookie: { a: canary } }, 'headers')
  log.info({ deep: [{ deeper: { password: canary, clientSecret: { value: canary }, accessToken: 12345678 } }] }, 'deep')
  log.info({ headers: { 'x-outside-form-secret': canary, 'x-challenge-token': canary } }, 'headers')
  log
    .child({ token: canary, requestToken: token })
    .child({ deep: { password: canary } })
    .warn('child')
  log.error(new Error(`The header was Bearer ${token}`, { cause: new Error(`cause ${token}`, { cause: { token } }) }))
  log.error(
    { err: new AggregateError([new Error(token)], 'several'), other: new Error(token), text: `x${token}y` },
    token,
  )
  log.error({ err: pgError }, 'database')
  log.error({ err: new Error(`connect postgres://portico:${canary}@db.internal:5432/portico failed`) })
  log.info('formatted %s and %j', token, { nested: token })
  log.info({ mistyped: token.slice(0, -3), bytes: Buffer.from(canary) })

  expect(text()).not.toContain(canary)
  expect(text()).not.toContain(token)
  expect(text()).not.toContain(token.slice(9, 40))
  expect(text()).not.toContain('12345678')
  expect(lines).toHaveLength(10)
  expect(parsed()[3]).toMatchObject({ token: '[redacted]', deep: { password: '[redacted]' } })
  // What helps is still there.
  expect(parsed()[5]).toMatchObject({ level: 'error', err: { type: 'AggregateError', message: 'several' } })
  expect(parsed()[6].err).toMatchObject({ code: '23505', constraint: 'contact_email' })
  expect(parsed()[4].err).toMatchObject({
    message: 'The header was Bearer [redacted]',
    cause: { message: 'cause ptc_[redacted]' },
  })
  expect(parsed()[7].err.message).toContain('postgres://portico:[redacted]@db.internal:5432/portico')
})

test('a pretty log is redacted too', () => {
  const { log, text } = capture('info', true)
  log.error({ err: new Error(`bad ${token}`), password: canary }, `seen ${token}`)
  expect(text()).toContain('bad ptc_[redacted]')
  expect(text()).not.toContain(canary)
  expect(text()).not.toContain(token)
})

test('endless and cyclic objects are cut', () => {
  const { log, text } = capture()
  const cycle: Record<string, unknown> = {
    text: 'x'.repeat(1_000_000),
    list: Array.from({ length: 100_000 }, () => 'y'),
  }
  cycle['self'] = cycle
  log.info(cycle, 'cycle')
  expect(text().length).toBeLessThan(200_000)
  expect(text()).toContain('[deeper]')
})

test('one request cannot fill the log with the names of its fields', () => {
  const { log, text, parsed } = capture()
  const details = Array.from({ length: 200 }, (_, at) => ({
    field: `${at}${'token'.repeat(3200)}`,
    code: 'unknown_field',
    message: '',
  }))
  logOutcome(log, outcome(400, fail('validation_failed', { details })))
  expect(parsed()[0].fields).toHaveLength(50)
  expect(parsed()[0].fields[7]).toBe(`${details[7]!.field.slice(0, 200)}: unknown_field`)
  expect(text().length).toBeLessThan(12_000)
})

test('strings are cut to 4 KB, and no secret is cut in half', () => {
  const { log, parsed, text } = capture()
  const url = `postgres://portico:${canary}@db.internal:5432/portico`
  const long = `${'x'.repeat(4096 - 30)}${url}${'y'.repeat(10_000)}`
  log.error({ err: new Error(long), long, [`${'k'.repeat(5000)}`]: 1 })
  expect(parsed()[0].long).toHaveLength(4097)
  expect(parsed()[0].err.message).toHaveLength(4097)
  expect(Object.keys(parsed()[0])).toContain('k'.repeat(200))
  expect(text()).not.toContain(canary.slice(0, 5))
})

test('a line is searched up to a bound, and what is longer is cut and said to be', () => {
  const short = `${' '.repeat(lineMax - token.length)}${token}`
  expect(redactLine(short)).toBe(`${' '.repeat(lineMax - token.length)}ptc_[redacted]`)
  const line = JSON.parse(redactLine(`{"a":"${token}","b":"${'tokentoken'.repeat(lineMax)}"}\n`))
  expect(line).toMatchObject({ level: 'warn', length: expect.any(Number) })
  expect(line.beginning).toMatch(/^\{"a":"ptc_\[redacted\]","b":"tokentoken/)
  expect(line.beginning).toHaveLength(4097)
})

test('an unlogged level costs nothing and writes nothing', () => {
  const { log, lines } = capture('warn')
  log.info(
    {
      get expensive() {
        throw new Error('was read')
      },
    },
    'no',
  )
  expect(lines).toEqual([])
})

const operation = { id: 'developerRecordsGet', method: 'GET', path: '/v1/apps/{saasAppId}/x' } as Operation<never>
const outcome = (status: number, failure?: Outcome['failure']): Outcome => ({
  correlationId: '0199a1b2-0000-7000-8000-0000000000c1',
  operation,
  caller: undefined,
  status,
  code: failure?.code,
  startedAtMs: 0,
  durationMs: 1.25,
  stages: [],
  failure,
})

test('a request is debug when it succeeded, info when the client erred, error when the service did', () => {
  const { log, parsed } = capture('debug')
  logOutcome(log, outcome(200))
  logOutcome(log, outcome(400, fail('field_value_invalid', { field: 'fields.amount', message: `not ${canary}` })))
  logOutcome(log, outcome(500, fail('internal_error', { cause: new TypeError('x is undefined') })))
  logOutcome(log, outcome(503, fail('shutting_down')))
  const [success, client, service, closing] = parsed()
  expect(success).toMatchObject({ level: 'debug', operationId: 'developerRecordsGet', durationMs: 1.3 })
  expect(client).toMatchObject({
    level: 'info',
    code: 'field_value_invalid',
    fields: ['fields.amount: field_value_invalid'],
  })
  expect(JSON.stringify(client)).not.toContain(canary)
  expect(service).toMatchObject({
    level: 'error',
    correlationId: '0199a1b2-0000-7000-8000-0000000000c1',
    code: 'internal_error',
    err: { type: 'TypeError', message: 'x is undefined' },
    msg: 'GET /v1/apps/{saasAppId}/x answered 500',
  })
  expect(service.err.stack).toContain('log.test.ts')
  expect(closing).toMatchObject({ level: 'error', code: 'shutting_down', err: { type: 'Failure' } })
})
