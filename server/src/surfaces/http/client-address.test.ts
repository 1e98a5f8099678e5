import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createClientAddress } from './client-address.ts'

const proxies = ['10.0.0.0/8', '192.0.2.1', '2001:db8:1::/48', 'fe80::/10']

function addressOf(peer: string | undefined, forwarded?: string, trusted: readonly string[] = proxies): string {
  const headers = { ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }) }
  return createClientAddress(trusted)({ socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage)
}

test.each<[what: string, peer: string, forwarded: string | undefined, client: string]>([
  ['the client of a trusted proxy', '10.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['the client behind two of them', '10.0.0.1', '198.51.100.7, 192.0.2.1', '198.51.100.7'],
  ['what a proxy saw, not what the client said', '10.0.0.1', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
  ['not what a client said to be a proxy', '10.0.0.1', '203.0.113.9, 10.0.0.2, 198.51.100.7', '198.51.100.7'],
  ['the proxy itself, where it says nothing', '10.0.0.1', undefined, '10.0.0.1'],
  ['a client among the proxies', '10.0.0.1', '10.0.0.9', '10.0.0.9'],
  ['the last proxy before something that is no address', '10.0.0.1', '198.51.100.7, unknown, 192.0.2.1', '192.0.2.1'],
  ['the proxy, where the list is empty', '10.0.0.1', ' , ', '10.0.0.1'],
  ['an address with a port', '10.0.0.1', '198.51.100.7:51234', '198.51.100.7'],
  ['an IPv6 address', '2001:db8:1::5', '2001:db8:2::7', '2001:db8:2::7'],
  ['an IPv6 address with a port', '10.0.0.1', '[2001:db8:2::7]:51234', '2001:db8:2::7'],
  ['a proxy on a socket for both families', '::ffff:10.0.0.1', '::ffff:198.51.100.7', '198.51.100.7'],
  ['a proxy with a zone', 'fe80::1%eth0', '198.51.100.7', '198.51.100.7'],
  ['an address with a zone', '10.0.0.1', 'fe80::2%eth0', 'fe80::2'],
  ['no network that is not trusted', '2001:db8:2::5', '198.51.100.7', '2001:db8:2::5'],
])('%s', (_, peer, forwarded, client) => {
  expect(addressOf(peer, forwarded)).toBe(client)
})

test('without trusted proxies the header says nothing', () => {
  expect(addressOf('10.0.0.1', '198.51.100.7', [])).toBe('10.0.0.1')
  expect(addressOf('::ffff:10.0.0.1', '198.51.100.7', [])).toBe('10.0.0.1')
})

test('who sends the header without being trusted is told of, once', () => {
  for (const trusted of [[], ['10.0.0.0/8']]) {
    const told: string[] = []
    const tell = createClientAddress(trusted, (peer) => void told.push(peer))
    const from = (remoteAddress: string, headers = {}) =>
      tell({ socket: { remoteAddress }, headers } as unknown as IncomingMessage)
    const forwarded = { 'x-forwarded-for': '198.51.100.7' }
    from('192.0.2.8')
    if (trusted.length > 0) from('10.0.0.1', forwarded)
    expect(told).toEqual([])
    from('192.0.2.8', forwarded)
    from('192.0.2.9', forwarded)
    expect(told).toEqual(['192.0.2.8'])
  }
})

test('a connection that is gone has no address, whatever stands in the header', () => {
  for (const trusted of [[], proxies]) expect(addressOf(undefined, '198.51.100.7', trusted)).toBe('')
})
