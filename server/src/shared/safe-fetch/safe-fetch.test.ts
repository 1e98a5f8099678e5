import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createAuthority } from '../../../test/support/certificates.ts'
import { startNameServer } from '../../../test/support/dns.ts'
import { type Receiver, startReceiver, startTcp } from '../../../test/support/receiver.ts'
import { createSafeFetch, type SafeFetchOptions } from './safe-fetch.ts'

const vectors = new URL('../../../test/vectors/blocked-destinations.json', import.meta.url)
const { blocked } = JSON.parse(readFileSync(vectors, 'utf8')) as { blocked: string[] }

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})
function keep<T extends { close(): Promise<void> }>(one: T): T {
  open.push(one)
  return one
}

const outside = (options: Partial<SafeFetchOptions> = {}) => keep(createSafeFetch({ allowLoopback: true, ...options }))
const post = { method: 'POST', body: '{}', responseBytesMax: 4096, deadlineMs: 10_000 } as const
const at = ({ port }: Receiver, host = '127.0.0.1') => `http://${host}:${port}/hook`
/** Nobody has been given this address, so that nothing leaves the machine for it (RFC 4291, outside what IANA assigns). */
const publicAddress = '3000::1'

test('a request reaches its receiver as it was given, and the answer comes back', async () => {
  const receiver = keep(
    await startReceiver((_request, response) => {
      response.writeHead(201, { 'content-type': 'text/plain', 'x-two': ['a', 'b'] }).end('Grüße')
    }),
  )
  const outcome = await outside().fetch(`http://127.0.0.1:${receiver.port}/a/b?c=d#e`, {
    ...post,
    headers: { 'content-type': 'application/json', 'x-service-event': 'e1' },
    body: '{"name":"Zoë"}',
  })
  expect(outcome).toMatchObject({ category: 'success', status: 201, bodyTruncated: false })
  expect(outcome.headers).toMatchObject({ 'content-type': 'text/plain', 'x-two': 'a, b' })
  expect(Buffer.from(outcome.body).toString()).toBe('Grüße')
  expect(receiver.requests).toMatchObject([
    { method: 'POST', path: '/a/b?c=d', body: '{"name":"Zoë"}', headers: { host: `127.0.0.1:${receiver.port}` } },
  ])
  expect(receiver.requests[0]!.headers).toMatchObject({ 'x-service-event': 'e1', 'content-length': '15' })
})

test.each([
  [204, 'success'],
  [301, 'http_3xx'],
  [307, 'http_3xx'],
  [404, 'http_4xx'],
  [410, 'gone'],
  [429, 'rate_limited'],
  [503, 'http_5xx'],
  [799, 'network_error'],
])('status %i is %s, and no redirect is followed', async (status, category) => {
  const elsewhere = keep(await startReceiver())
  const receiver = keep(
    await startReceiver((_request, response) => response.writeHead(status, { location: at(elsewhere) }).end()),
  )
  expect(await outside().fetch(at(receiver), post)).toMatchObject({ category, status })
  expect(elsewhere.connections).toBe(0)
})

test.each(blocked)('%s is refused without a connection or a question to a name server', async (url) => {
  const names = keep(await startNameServer())
  const outcome = await outside({ allowLoopback: false, dnsServers: [names.address] }).fetch(url, post)
  expect(outcome).toMatchObject({ category: 'blocked_destination', status: null })
  expect(names.asked).toEqual([])
})

/** What each vector names, behind a name that anybody can publish. */
const hosts = blocked.map((url) => URL.parse(url)?.hostname.replace(/[[\]]/g, '') ?? '')
test.each(hosts.filter((host) => /^[\d.]+$|:/.test(host)))('a name that leads to %s is refused', async (address) => {
  const names = keep(await startNameServer())
  names.publishAddresses('hook.example', address)
  names.publishAddresses('mixed.example', publicAddress, '8.8.8.8', address)
  const { fetch } = outside({ allowLoopback: false, dnsServers: [names.address] })
  for (const name of ['hook', 'mixed']) {
    expect((await fetch(`https://${name}.example/`, post)).category).toBe('blocked_destination')
  }
  expect(names.asked).toContain('mixed.example')
})

test('a name that changes between the check and the connection does not lead to the other address', async () => {
  const receiver = keep(await startReceiver())
  const names = keep(await startNameServer())
  names.publishAddresses('hook.example', publicAddress)
  // A and AAAA are asked for once. Whoever asks again is told the address of this machine.
  names.beforeAnswer = async () => {
    if (names.asked.length > 2) names.publishAddresses('hook.example', '127.0.0.1')
  }
  const { fetch } = outside({ allowLoopback: false, dnsServers: [names.address], connectTimeoutMs: 2000 })
  const url = `https://hook.example:${receiver.port}/`
  const first = await fetch(url, post)
  expect(first.category).toMatch(/^(network_error|timeout|connection_refused)$/)
  expect(names.asked).toEqual(['hook.example', 'hook.example'])
  expect((await fetch(url, post)).category).toBe('blocked_destination')
  expect(receiver.connections).toBe(0)
})

test('names are resolved by the name servers that were given, and `Host` keeps the name', async () => {
  const receiver = keep(await startReceiver())
  const names = keep(await startNameServer())
  // The first address answers nobody: 127.0.0.2 has no listener on that port.
  names.publishAddresses('hook.example', '127.0.0.2', '127.0.0.1')
  const outcome = await outside({ dnsServers: [names.address] }).fetch(at(receiver, 'hook.example'), post)
  expect(outcome.category).toBe('success')
  expect(receiver.requests[0]!.headers.host).toBe(`hook.example:${receiver.port}`)
})

test('names without an answer are dns_error, and nothing is said about addresses', async () => {
  const names = keep(await startNameServer())
  names.fail('broken.example', 'SERVFAIL')
  names.fail('silent.example', 'silence')
  names.publish('text.example', 'no address')
  const { fetch } = outside({ dnsServers: [names.address], connectTimeoutMs: 300 })
  for (const name of ['broken', 'silent', 'text', 'missing']) {
    const outcome = await fetch(`http://${name}.example/`, post)
    expect(outcome).toMatchObject({ category: 'dns_error', sentence: expect.not.stringMatching(/\d/) })
  }
})

test('a port where nobody listens is connection_refused', async () => {
  const receiver = await startReceiver()
  await receiver.close()
  const outcome = await outside().fetch(at(receiver), post)
  expect(outcome).toMatchObject({ category: 'connection_refused', status: null })
  expect(outcome.sentence).not.toContain(String(receiver.port))
})

test('a proxy of the environment is not used', async () => {
  const [proxy, receiver] = [keep(await startReceiver()), keep(await startReceiver())]
  const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
  const before = names.map((name) => [name, process.env[name]] as const)
  try {
    for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxy.port}`
    expect((await outside().fetch(at(receiver), post)).category).toBe('success')
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
  expect([proxy.connections, receiver.connections]).toEqual([0, 1])
})

test('connections are reused within a group, and never by another group or without one', async () => {
  const receiver = keep(await startReceiver())
  const { fetch } = outside()
  const send = async (connectionGroup?: string) => {
    const outcome = await fetch(at(receiver), { ...post, ...(connectionGroup && { connectionGroup }) })
    expect(outcome.category).toBe('success')
    return receiver.requests.at(-1)!.connection
  }
  const ofA = [await send('tenant a'), await send('tenant a'), await send('tenant a'), await send('tenant a')]
  expect(new Set(ofA).size).toBeLessThan(ofA.length)
  const others = [await send('tenant b'), await send(), await send()]
  expect(new Set(others).size).toBe(3)
  expect(others.filter((connection) => ofA.includes(connection)).length).toBe(0)
  expect(ofA.includes(await send('tenant a'))).toBe(true)
})

test("the signal of the caller ends a request with the caller's reason", async () => {
  const receiver = keep(await startReceiver(() => undefined))
  const stop = new AbortController()
  const sent = outside().fetch(at(receiver), { ...post, signal: stop.signal })
  setTimeout(() => stop.abort(new Error('shutting down')), 50)
  await expect(sent).rejects.toThrow('shutting down')
})

test.each<Record<string, string>>([
  { host: 'other.example' },
  { Connection: 'close' },
  { 'proxy-authorization': 'x' },
  { 'x-split': 'a\r\nx-injected: b' },
  { 'x split': 'a' },
])('headers that are not for the caller to set are refused: %j', async (headers) => {
  const receiver = keep(await startReceiver())
  await expect(outside().fetch(at(receiver), { ...post, headers })).rejects.toThrow(/header/)
  expect(receiver.requests).toEqual([])
})

test('TLS: a certificate has to come from a trusted authority, be for the name, and be valid', async () => {
  const authority = createAuthority()
  const stranger = createAuthority()
  const folder = await mkdtemp(join(tmpdir(), 'portico-ca-'))
  keep({ close: () => rm(folder, { recursive: true }) })
  const extraCaFile = join(folder, 'ca.pem')
  await writeFile(extraCaFile, authority.certificate)
  const names = keep(await startNameServer())
  names.publishAddresses('hook.example', '127.0.0.1')
  const { fetch } = outside({ dnsServers: [names.address], extraCaFile })

  const answered = async (identity: { key: string; cert: string }, host = 'hook.example', use = fetch) => {
    const receiver = keep(await startReceiver(undefined, identity))
    const { category, sentence } = await use(`https://${host}:${receiver.port}/`, post)
    expect(receiver.requests.length).toBe(category === 'success' ? 1 : 0)
    return { category, sentence }
  }
  expect(await answered(authority.issue(['hook.example']))).toMatchObject({ category: 'success' })
  expect(await answered(authority.issue(['127.0.0.1']), '127.0.0.1')).toMatchObject({ category: 'success' })
  const refused = (reason: string) => ({ category: 'tls_error', sentence: expect.stringContaining(reason) })
  expect(await answered(authority.issue(['other.example']))).toEqual(refused('for another name'))
  expect(await answered(authority.issue(['127.0.0.1']))).toEqual(refused('for another name'))
  expect(await answered(authority.issue(['hook.example'], { expired: true }))).toEqual(refused('has expired'))
  expect(await answered(stranger.issue(['hook.example']))).toMatchObject({ category: 'tls_error' })
  const strict = outside({ dnsServers: [names.address] })
  expect(await answered(authority.issue(['hook.example']), 'hook.example', strict.fetch)).toMatchObject({
    category: 'tls_error',
  })
})

test('a receiver that does not speak TLS is tls_error, one that hangs in the handshake timeout', async () => {
  const plain = keep(await startTcp((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')))
  const silent = keep(await startTcp(() => undefined))
  expect((await outside().fetch(`https://127.0.0.1:${plain.port}/`, post)).category).toBe('tls_error')
  const { fetch } = outside({ connectTimeoutMs: 300 })
  expect((await fetch(`https://127.0.0.1:${silent.port}/`, post)).category).toBe('timeout')
})

test('a file of authorities that holds none is refused at once', async () => {
  expect(() => createSafeFetch({ allowLoopback: false, extraCaFile: import.meta.filename })).toThrow('no certificate')
})
