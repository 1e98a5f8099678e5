/**
 * The key-management port: who holds the key-encryption key, which wraps the data keys of the service (envelope
 * encryption, NIST SP 800-57 part 1, 5.3.5). The service keeps the wrapped data keys; whoever has those and not the
 * key-encryption key has nothing.
 *
 * Three adapters: `local-file` (master.key in the data directory), `environment` (PORTICO_MASTER_KEY) and `vault` (the
 * Transit engine of HashiCorp Vault or OpenBao, whose key never leaves it).
 */
export interface KeyManagement {
  /** Where the key is, for people: fits "the key of …". Holds no secret. */
  readonly place: string
  /** Whether this adapter can be asked to unwrap what was wrapped under that key. Asks nobody. */
  holds(keyId: string): boolean
  /** The id of the key that `wrap` uses now. It changes with a rotation and tells nothing about the key. */
  currentKeyId(): Promise<string>
  /** Wraps a key of 16 to 64 bytes. `context` is authenticated with it and must be given again to unwrap. */
  wrap(key: Uint8Array, context: string): Promise<WrappedKey>
  /** What was wrapped, under the current key or one from before a rotation. Throws a `KeyManagementError`. */
  unwrap(wrapped: WrappedKey, context: string): Promise<Buffer>
}

export interface WrappedKey {
  readonly wrapped: Buffer
  /** The key that it was wrapped under: `currentKeyId` of that moment. */
  readonly keyId: string
}

export const keyBytesMin = 16
export const keyBytesMax = 64

/** Refuses to wrap what is no key: the port is not for secrets of any length. */
export function requireKeyLength({ length }: Uint8Array): void {
  if (length < keyBytesMin || length > keyBytesMax) {
    throw new RangeError(`A key has ${keyBytesMin} to ${keyBytesMax} bytes.`)
  }
}

/**
 * A key cannot be wrapped or unwrapped; the sentence says what the person who runs the service can do about it.
 *
 * - `unknown_key`: wrapped under a key that is not configured here
 * - `not_authentic`: not what was wrapped, or not with this context
 * - `refused`: the holder of the key answers, and says no
 * - `unavailable`: the holder of the key does not answer; later it may
 */
export class KeyManagementError extends Error {
  override readonly name = 'KeyManagementError'
  readonly reason: 'unknown_key' | 'not_authentic' | 'refused' | 'unavailable'

  constructor(reason: KeyManagementError['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
