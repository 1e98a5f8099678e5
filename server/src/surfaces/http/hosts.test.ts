import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createHostCheck, type HostKind } from './hosts.ts'

function checkOf(baseUrl: string, domains: readonly string[] = []) {
  const asked: string[] = []
  const check = createHostCheck(baseUrl, (name) => {
    asked.push(name)
    return Promise.resolve(domains.includes(name))
  })
  const kindOf = (host: string | undefined, httpVersion = '1.1') =>
    check({ headers: { host }, httpVersion } as unknown as IncomingMessage)
  return { asked, kindOf }
}

test.each<[host: string | undefined, kind: HostKind]>([
  ['portico.example', 'api'],
  ['PORTICO.example.:443', 'api'],
  ['acme.portico.example', 'tenant'],
  ['ACME.Portico.Example:8080', 'tenant'],
  ['acme.portico.example.', 'tenant'],
  ['a.b.portico.example', 'api'],
  ['-.portico.example', 'api'],
  ['.portico.example', 'api'],
  ['portico', 'api'],
  ['localhost:8080', 'api'],
  ['acme.localhost', 'api'],
  ['10.0.0.7:8080', 'api'],
  ['0x7f.1', 'api'],
  ['[::1]:8080', 'api'],
  ['_dmarc.northwind.example', 'api'],
  [`${'x'.repeat(64)}.example`, 'api'],
  [`${'x.'.repeat(130)}example`, 'api'],
  ['', 'malformed'],
  ['a, b', 'malformed'],
  ['user@acme.portico.example', 'malformed'],
  ['acme.portico.example/path', 'malformed'],
  [undefined, 'malformed'],
])('%s is decided at once: %s', (host, kind) => {
  const { asked, kindOf } = checkOf('https://portico.example')
  // The second time by what is remembered.
  expect([kindOf(host), kindOf(host)]).toEqual([kind, kind])
  expect(asked).toEqual([])
})

test('HTTP/1.0 needs no host', () => {
  expect(checkOf('https://portico.example').kindOf(undefined, '1.0')).toBe('api')
})

test('below an address tenants are on localhost', () => {
  for (const baseUrl of ['http://127.0.0.1:8080', 'http://[::1]:8080', 'http://localhost:8080']) {
    const { kindOf } = checkOf(baseUrl)
    expect([kindOf('acme.localhost:8080'), kindOf('localhost'), kindOf('127.0.0.1')]).toEqual(['tenant', 'api', 'api'])
  }
})

test('a domain is asked for each time, and what is remembered of other hosts stays true', async () => {
  const { asked, kindOf } = checkOf('https://portico.example', ['portal.northwind.example'])
  expect(kindOf('acme.portico.example')).toBe('tenant')
  expect(await kindOf('Portal.Northwind.example.:443')).toBe('tenant')
  expect(await kindOf('other.example')).toBe('api')
  expect(await kindOf('portal.northwind.example')).toBe('tenant')
  expect(asked).toEqual(['portal.northwind.example', 'other.example', 'portal.northwind.example'])
  expect(kindOf('acme.portico.example')).toBe('tenant')
  expect(kindOf('portico.example')).toBe('api')
})
