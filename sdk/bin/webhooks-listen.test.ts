import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { signOwn, signStandard, vectors } from '../test/signatures.ts'
import { reportOf } from './delivery-report.ts'

const { secret, body } = vectors[0]!
const started: ChildProcess[] = []
afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
})

/** The command as `npm run` starts it. */
function command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const script = join(import.meta.dirname, 'webhooks-listen.ts')
  const { PORTICO_WEBHOOK_SECRET: _, ...inherited } = process.env
  const child = spawn(process.execPath, [script, ...args], { env: { ...inherited, ...env } })
  started.push(child)
  return child
}

async function listen(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const child = command(['--port', '0', ...args], env)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  const printed = async (what: RegExp) => {
    while (!what.test(output)) await once(child.stdout, 'data')
    return what.exec(output)!
  }
  const [, url] = await printed(/Listening at (\S+)\n/)
  return { url: url!, printed, output: () => output, child }
}

const now = () => String(Math.floor(Date.now() / 1000))
function signed(content = body, key = secret, timestamp = now()): RequestInit {
  const signature = signOwn(key, timestamp, content)
  const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature, 'x-service-delivery': 'd1' }
  return { method: 'POST', body: content, headers }
}

test('a genuine delivery is shown and answered 204, and again where it is repeated', async () => {
  const { url, printed, output } = await listen([], { PORTICO_WEBHOOK_SECRET: secret })
  expect((await fetch(url, signed())).status).toBe(204)
  await printed(/✓ membership\.role_changed answered 204\n/)
  await printed(/ {2}event +0199a1b2-0000-7000-8000-000000000001\n/)
  await printed(/ {2}delivery +d1\n/)
  await printed(/ {2}subject +membership 0199a1b2-0000-7000-8000-0000000000bb\n/)
  await printed(/ {4}"userTypeKey": "staff"/)
  expect((await fetch(url, signed())).status).toBe(204)
  await printed(/✓ membership\.role_changed seen before answered 204\n/)
  expect(output()).not.toContain(secret)
  expect(output()).not.toContain('\x1b')
})

test('what is not genuine is answered 400 and shown with the reason', async () => {
  const { url, printed } = await listen(['--secret', secret])
  for (const [request, reason] of [
    [signed(body, 'whsec_another'), 'signature_mismatch'],
    [signed(body, secret, '1789378200'), 'timestamp_out_of_tolerance'],
    [{ method: 'POST', body }, 'missing_header'],
    [signed('no json'), 'malformed_body'],
  ] as const) {
    expect((await fetch(url, request)).status).toBe(400)
    await printed(new RegExp(`✗ ${reason} answered 400\n`))
  }
})

test('failures are tried with --status, several secrets are taken, and Standard Webhooks too', async () => {
  const { url, printed } = await listen(['--secret', 'whsec_old', '--secret', secret, '--status', '503'])
  const timestamp = now()
  const signature = signStandard(secret, 'e1', timestamp, body)
  const headers = { 'webhook-id': 'e1', 'webhook-timestamp': timestamp, 'webhook-signature': signature }
  expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(503)
  await printed(/answered 503/)
})

test('only POST is taken, and no body without end', async () => {
  const { url } = await listen(['--secret', secret])
  expect((await fetch(url)).status).toBe(405)
  const large = await fetch(url, { method: 'POST', body: 'x'.repeat(2 * 1024 * 1024 + 1) }).catch(() => undefined)
  expect(large?.status ?? 413).toBe(413)
  expect((await fetch(url, signed())).status).toBe(204)
})

test('SIGTERM ends it', async () => {
  const { child } = await listen(['--secret', secret])
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

test.each([
  [[], 'A secret is needed'],
  [['--secret', 'x', '--status', '99'], '--status takes an integer from 200 to 599'],
  [['--secret', 'x', '--port', 'abc'], '--port takes an integer'],
  [['--colour'], "Unknown option '--colour'"],
])('%j is explained', async (args, sentence) => {
  const child = command(args)
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect(said).toContain(sentence)
  expect(said).not.toContain('    at ')
  expect(code).toBe(1)
})

test('colours are for terminals, and control characters of strangers for nobody', () => {
  const event = { ...JSON.parse(body), type: 'a\x1b[2Jb' }
  const delivery = { receivedAt: new Date(0), headers: {}, body, result: event, status: 204, isRepeated: false }
  expect(reportOf(delivery, false)).toContain('00:00:00.000 ✓ a\\u{1b}[2Jb answered 204\n')
  expect(reportOf(delivery, true)).toContain('\x1b[32m✓\x1b[39m')
})
