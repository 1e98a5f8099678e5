import { createHash } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { codedDocument, preferredCoding } from './content-codings.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ modules: true })
})
afterAll(() => service?.stop())

test.each([
  [undefined, undefined],
  ['', undefined],
  ['identity', undefined],
  ['deflate, zstd', undefined],
  ['gzip', 'gzip'],
  ['gzip, deflate, br', 'br'],
  ['br;q=0.5, gzip;q=0.8', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['gzip;q=0', undefined],
  ['*', 'br'],
  ['*;q=0.1, br;q=0', 'gzip'],
  ['GZIP ; Q=1', 'gzip'],
  ['identity, gzip;q=0.5', undefined],
  ['gzip;q=x', undefined],
] as const)('who accepts %j is sent %s', (accepted, wanted) => {
  expect(preferredCoding(accepted)).toBe(wanted)
})

test('a contract leaves in the coding that the client takes, under one fingerprint', async () => {
  const { token } = service.app.organizations.a.credentials.live
  const ask = (headers: Record<string, string>) =>
    request(`http://127.0.0.1:${service.port}/v1/apps/${service.app.appId}/openapi.json`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
    })
  const decode = { gzip: gunzipSync, br: brotliDecompressSync, identity: (bytes: Buffer) => bytes }
  const lengths: number[] = []
  for (const [coding, decoded] of Object.entries(decode)) {
    const { statusCode, headers, body } = await ask({ 'accept-encoding': coding })
    const bytes = Buffer.from(await body.arrayBuffer())
    const sha256 = createHash('sha256').update(decoded(bytes)).digest('hex')
    expect([statusCode, headers['content-length']]).toEqual([200, String(bytes.length)])
    expect(headers['content-encoding']).toBe(coding === 'identity' ? undefined : coding)
    expect(headers).toMatchObject({
      'x-service-contract-sha256': sha256,
      etag: `"${sha256}"`,
      vary: 'Accept-Encoding',
      'cache-control': 'private, no-store',
    })
    lengths.push(bytes.length)
    const again = await ask({ 'accept-encoding': coding, 'if-none-match': headers['etag'] as string })
    expect([again.statusCode, await again.body.text()]).toEqual([304, ''])
    expect(again.headers).toMatchObject({ etag: headers['etag'], vary: 'Accept-Encoding' })
  }
  expect(lengths[0]).toBeLessThan(lengths[2]! / 10)
  expect(lengths[1]).toBeLessThan(lengths[0]!)
})

test('answers that are no contract are not compressed', async () => {
  const { token } = service.app.organizations.a.credentials.live
  const { headers, body } = await request(`http://127.0.0.1:${service.port}/v1/apps/${service.app.appId}/objects`, {
    headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' },
  })
  await body.dump()
  expect([headers['content-encoding'], headers['vary']]).toEqual([undefined, undefined])
})

test('of many documents the last used are kept, and each is sent as it is', () => {
  for (const round of [1, 2]) {
    for (let n = 0; n < 20; n++) {
      const { bytes } = codedDocument(`print ${n}`, `text ${n}, é`, 'gzip')
      expect([round, gunzipSync(bytes).toString()]).toEqual([round, `text ${n}, é`])
    }
  }
})
