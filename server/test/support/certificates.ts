import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/** An authority and what it signs, made in memory: X.509 (RFC 5280) in DER, on P-256, as little of it as TLS needs. */
export interface Authority {
  readonly certificate: string
  /** `names`: DNS names and IPv4 addresses. */
  issue(
    names: readonly string[],
    options?: { readonly expired?: boolean },
  ): { readonly key: string; readonly cert: string }
}

const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
const sequence = (...parts: readonly Uint8Array[]) => tlv(0x30, ...parts)
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, 'hex'))
const octets = (content: Uint8Array) => tlv(0x04, content)
const bits = (content: Uint8Array) => tlv(0x03, Buffer.of(0), content)
const utcTime = (at: number) =>
  tlv(
    0x17,
    Buffer.from(
      `${new Date(at)
        .toISOString()
        .replace(/[-:T]|\..*/g, '')
        .slice(2)}Z`,
    ),
  )
const commonName = (text: string) => sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from(text)))))
const pem = (der: Uint8Array) => {
  const lines = Buffer.from(der)
    .toString('base64')
    .match(/.{1,64}/g)!
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
const basicConstraintsOfAuthority = sequence(
  oid('551d13'),
  tlv(0x01, Buffer.of(0xff)),
  octets(sequence(tlv(0x01, Buffer.of(0xff)))),
)
const dayMs = 86_400_000

function alternativeNames(names: readonly string[]): Buffer {
  const encoded = names.map((name) =>
    isIP(name) === 4 ? tlv(0x87, Buffer.from(name.split('.').map(Number))) : tlv(0x82, Buffer.from(name)),
  )
  return sequence(oid('551d11'), octets(sequence(...encoded)))
}

interface Contents {
  readonly issuer: string
  readonly subject: string
  readonly publicKey: KeyObject
  readonly extension: Uint8Array
  readonly notBefore: number
  readonly notAfter: number
}

function signed(contents: Contents, privateKey: KeyObject): string {
  const serial = randomBytes(8)
  serial[0] = (serial[0]! & 0x7f) | 0x40
  const toSign = sequence(
    tlv(0xa0, tlv(0x02, Buffer.of(2))),
    tlv(0x02, serial),
    ecdsaWithSha256,
    commonName(contents.issuer),
    sequence(utcTime(contents.notBefore), utcTime(contents.notAfter)),
    commonName(contents.subject),
    contents.publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(contents.extension)),
  )
  return pem(sequence(toSign, ecdsaWithSha256, bits(sign('sha256', toSign, privateKey))))
}

export function createAuthority(): Authority {
  const issuer = `Test authority ${randomBytes(4).toString('hex')}`
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const now = Date.now()
  const authority = { issuer, subject: issuer, publicKey: own.publicKey, extension: basicConstraintsOfAuthority }
  return {
    certificate: signed({ ...authority, notBefore: now - dayMs, notAfter: now + dayMs }, own.privateKey),
    issue(names, { expired = false } = {}) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const validity = { notBefore: now - 3 * dayMs, notAfter: now + (expired ? -dayMs : dayMs) }
      const contents = { issuer, subject: 'receiver', publicKey, extension: alternativeNames(names), ...validity }
      return {
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
        cert: signed(contents, own.privateKey),
      }
    },
  }
}
