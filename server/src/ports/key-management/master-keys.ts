import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { type KeyManagement, KeyManagementError, requireKeyLength } from './port.ts'

/** A master key, and those that it replaced for as long as something is wrapped under them. Each has 32 bytes. */
export interface MasterKeys {
  readonly current: Uint8Array
  readonly previous: readonly Uint8Array[]
}

/**
 * What the adapters have in common whose master key is in this process: a key-encryption key, derived from the master key
 * by HKDF-SHA256 (RFC 5869), wraps by AES-256-GCM. A wrapped key is nonce (12 bytes), ciphertext, tag (16 bytes). The
 * nonce is random: fewer keys are ever wrapped than a nonce of 96 bits allows by a factor of a billion.
 *
 * The key id is derived too, so the same master key has the same id wherever it is kept.
 */
export function keepMasterKeys(place: string, { current, previous }: MasterKeys): KeyManagement {
  const ids = [current, ...previous].map(masterKeyId)
  const keys = new Map([current, ...previous].map((master, i) => [ids[i]!, keyEncryptionKey(master)]))
  const currentId = ids[0]!
  return {
    place,
    holds: (keyId) => keys.has(keyId),
    currentKeyId: async () => currentId,
    async wrap(key, context) {
      requireKeyLength(key)
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keys.get(currentId)!, nonce).setAAD(Buffer.from(context))
      const sealed = [nonce, cipher.update(key), cipher.final(), cipher.getAuthTag()]
      return { wrapped: Buffer.concat(sealed), keyId: currentId }
    },
    async unwrap({ wrapped, keyId }, context) {
      const key = keys.get(keyId)
      if (!key) throw new KeyManagementError('unknown_key', `${place} holds no key ${keyId}.`)
      try {
        return decrypt(key, wrapped, context)
      } catch (cause) {
        const problem = `A key that ${place} should open was changed, or belongs elsewhere.`
        throw new KeyManagementError('not_authentic', problem, { cause })
      }
    },
  }
}

const nonceBytes = 12
const tagBytes = 16

function decrypt(key: KeyObject, wrapped: Buffer, context: string): Buffer {
  const tagAt = wrapped.length - tagBytes
  if (tagAt < nonceBytes) throw new RangeError('too short')
  const decipher = createDecipheriv('aes-256-gcm', key, wrapped.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(context)).setAuthTag(wrapped.subarray(tagAt))
  return Buffer.concat([decipher.update(wrapped.subarray(nonceBytes, tagAt)), decipher.final()])
}

function derive(master: Uint8Array, purpose: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `portico ${purpose}`, length))
}

function keyEncryptionKey(master: Uint8Array): KeyObject {
  return createSecretKey(derive(master, 'key encryption', 32))
}

/** Eight bytes tell master keys apart, and lead back to none. */
function masterKeyId(master: Uint8Array): string {
  return `master:${derive(master, 'key id', 8).toString('hex')}`
}
