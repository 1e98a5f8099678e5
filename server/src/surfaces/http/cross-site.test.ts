import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createCrossSiteCheck } from './cross-site.ts'

/** What an attacker can make a browser send, and what it says of itself then. */
const host = 'acme.portico.example'
const json = 'application/json'
type Headers = Readonly<Record<string, string | undefined>>

function verdict(headers: Headers, method = 'POST', baseUrl = 'https://portico.example'): string {
  const request = { method, headers: { host, 'content-type': json, ...headers } } as unknown as IncomingMessage
  return createCrossSiteCheck(baseUrl)(request)?.code ?? 'passes'
}

test.each<[who: string, headers: Headers]>([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another tenant', { 'sec-fetch-site': 'same-site', origin: 'https://evil.portico.example' }],
  ['the API host', { 'sec-fetch-site': 'same-site', origin: 'https://portico.example' }],
  ['a browser that is told two things', { 'sec-fetch-site': 'same-origin, cross-site' }],
  ['another site in an old browser', { origin: 'https://evil.example' }],
  ['another tenant in an old browser', { origin: 'https://evil.portico.example' }],
  ['a site whose name begins with the host', { origin: `https://${host}.evil.example` }],
  ['a site that has the host for a user name', { origin: `https://${host}@evil.example` }],
  ['a site whose name ends with the host', { origin: `https://evil-${host}` }],
  ['another port', { origin: `https://${host}:8443` }],
  ['a sandboxed frame, a file or a redirect', { origin: 'null' }],
  ['an origin that is none', { origin: '' }],
  ['an origin without a host', { origin: 'data:,' }],
  ['two origins', { origin: `https://${host}, https://evil.example` }],
  ['a page of this host over http', { origin: `http://${host}` }],
  ['a browser extension', { origin: 'chrome-extension://abcdef' }],
])('%s changes nothing', (_, headers) => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    expect(verdict(headers, method), method).toBe('cross_site_request')
  }
  expect(verdict(headers, 'GET')).toBe('passes')
  expect(verdict(headers, 'HEAD')).toBe('passes')
})

test.each([
  'text/plain',
  'TEXT/PLAIN; charset=utf-8',
  'application/x-www-form-urlencoded',
  ' multipart/form-data; boundary=x',
])('a form of a browser that says nothing, as %s, is refused for its type', (type) => {
  expect(verdict({ 'content-type': type })).toBe('unsupported_media_type')
})

test.each<[who: string, headers: Headers]>([
  ['the page itself', { 'sec-fetch-site': 'same-origin', origin: `https://${host}` }],
  ['the page itself in an old browser', { origin: `https://${host}` }],
  ['a proxy that names the port of https', { origin: `https://${host}`, host: `${host}:443` }],
  ['another spelling of the host', { origin: `https://${host}`, host: 'ACME.portico.example' }],
  ['a client that is no browser', {}],
  ['a client that sends no body', { 'content-type': undefined }],
])('%s is let through', (_, headers) => {
  for (const method of ['POST', 'DELETE']) expect(verdict(headers, method), method).toBe('passes')
})

test('without TLS the scheme says nothing, the port does', () => {
  const check = (origin: string) => verdict({ host: 'acme.localhost:8080', origin }, 'POST', 'http://127.0.0.1:8080')
  expect(check('http://acme.localhost:8080')).toBe('passes')
  expect(check('https://acme.localhost:8080')).toBe('passes')
  expect(check('http://acme.localhost')).toBe('cross_site_request')
  expect(check('http://acme.localhost:8081')).toBe('cross_site_request')
  expect(check('http://evil.localhost:8080')).toBe('cross_site_request')
})
