import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

/**
 * The form of a sealed value, version 1: format (1 byte), number of the data key (4 bytes, big endian), nonce (12 bytes),
 * ciphertext, tag (16 bytes). AES-256-GCM (NIST SP 800-38D); the first five bytes and the context are authenticated.
 *
 * Nonces are random, so one data key may seal 2^32 values (SP 800-38D, 8.3): rotate long before.
 */
const format = 1
const headerBytes = 5
const nonceBytes = 12
const tagBytes = 16

export interface DataKey {
  readonly dataKeyId: number
  readonly key: KeyObject
}

/** What makes a value unusable: it was changed, cut, or is opened as something that it is not. Holds none of it. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken'
}

export function sealWith({ dataKeyId, key }: DataKey, plaintext: Uint8Array, context: readonly string[]): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt8(format)
  header.writeUInt32BE(dataKeyId, 1)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(authenticated(header, context))
  return Buffer.concat([header, nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

export function openWith(key: KeyObject, sealed: Uint8Array, context: readonly string[]): Buffer {
  const tagAt = sealed.length - tagBytes
  const contentAt = headerBytes + nonceBytes
  const nonce = sealed.subarray(headerBytes, contentAt)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(authenticated(sealed.subarray(0, headerBytes), context)).setAuthTag(sealed.subarray(tagAt))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(contentAt, tagAt)), decipher.final()])
  } catch (cause) {
    throw new SealBroken('A sealed value was changed, or belongs elsewhere.', { cause })
  }
}

/** The number of the data key that a value was sealed with. */
export function dataKeyOf(sealed: Uint8Array): number {
  if (sealed.length < headerBytes + nonceBytes + tagBytes || sealed[0] !== format) {
    throw new SealBroken('Not a sealed value of a form that this release knows.')
  }
  return Buffer.from(sealed.subarray(1, headerBytes)).readUInt32BE()
}

/**
 * The context behind the header, each part after its length in bytes: with separators, ['a', 'b-c'] and ['a-b', 'c'] could
 * be made one. A lone surrogate is refused, since UTF-8 has no form for it and would make different parts alike.
 */
function authenticated(header: Uint8Array, context: readonly string[]): Buffer {
  if (context.length === 0) throw new TypeError('A sealed value needs a context.')
  const parts = context.flatMap((part) => {
    if (!part.isWellFormed()) throw new TypeError('A context must be well-formed Unicode.')
    const bytes = Buffer.from(part)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return [length, bytes]
  })
  return Buffer.concat([header, ...parts])
}
