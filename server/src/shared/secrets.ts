import type { KeyObject } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { fail } from '../kernel/errors.ts'
import { KeyManagementError } from '../ports/key-management/port.ts'
import { type DataKeyParts, makeDataKey, readDataKeys, unwrapDataKey } from './data-keys.ts'
import { dataKeyOf, openWith, SealBroken, sealWith } from './sealing.ts'

/**
 * Seals what must not be read from the database alone: envelope encryption with data keys that are kept, wrapped, in
 * `portico.data_key` (docs/secrets.md). A value that cannot be opened throws `SealBroken`: a fault of the service or of
 * whoever changed it, never of a client. A key management that is asked and does not answer is 503 `secrets_unavailable`.
 */
export interface Secrets {
  /**
   * Seals at most 1 MiB with the current data key (AES-256-GCM); the result is 33 bytes longer. `context` is authenticated
   * and must be given again to open: where the value belongs, for instance [organizationId, appId, reference].
   */
  seal(plaintext: string | Uint8Array, context: readonly string[]): Promise<Buffer>
  open(sealed: Uint8Array, context: readonly string[]): Promise<Buffer>
}

export interface SecretsParts extends DataKeyParts {
  readonly clock: Clock
  readonly log: { warn(details: object, sentence: string): void }
}

const plaintextBytesMax = 1_048_576
/** How long a process may go on sealing with a data key that another one has replaced. */
const currentForMs = 60_000

/**
 * Reads all data keys, making the first one in a new database. Throws a `KeyManagementError` where one cannot be
 * unwrapped: what is sealed with it could not be opened later either.
 */
export async function openSecrets(parts: SecretsParts): Promise<Secrets> {
  const { clock, log } = parts
  const keys = new Map<number, KeyObject>()
  let currentId = 0
  let readAt = 0
  let reading: Promise<void> | undefined

  async function readTable(): Promise<void> {
    const now = clock.now()
    const stored = await readDataKeys(parts.database)
    const unknown = stored.filter(({ dataKeyId }) => !keys.has(dataKeyId))
    const unwrapped = await Promise.all(unknown.map((row) => unwrapDataKey(parts, row)))
    for (const [i, { dataKeyId }] of unknown.entries()) keys.set(dataKeyId, unwrapped[i]!)
    currentId = stored.at(-1)?.dataKeyId ?? 0
    readAt = now
  }

  /** One reading for all who ask while it runs. */
  function read(): Promise<void> {
    reading ??= readTable().finally(() => {
      reading = undefined
    })
    return reading
  }

  /** The key of that number, which another process may have made a moment ago. */
  async function find(dataKeyId: number): Promise<KeyObject> {
    // Twice: a reading that was under way may have begun before the key was there.
    for (let readings = 0; !keys.has(dataKeyId) && readings < 2; readings++) await read().catch(refuseRequest)
    const key = keys.get(dataKeyId)
    if (!key) throw new SealBroken(`A value was sealed with data key ${dataKeyId}, which this database does not have.`)
    return key
  }

  await read()
  if (currentId === 0) {
    await makeDataKey(parts, 1)
    await read()
  }

  return {
    async seal(plaintext, context) {
      const bytes = typeof plaintext === 'string' ? Buffer.from(plaintext) : plaintext
      if (bytes.length > plaintextBytesMax) throw new RangeError(`A secret has at most ${plaintextBytesMax} bytes.`)
      if (clock.now() - readAt >= currentForMs) {
        // The old data key is as good as the new one until it can be had.
        await read().catch((err: unknown) => log.warn({ err }, 'The data keys could not be read again.'))
      }
      return sealWith({ dataKeyId: currentId, key: keys.get(currentId)! }, bytes, context)
    },
    async open(sealed, context) {
      return openWith(await find(dataKeyOf(sealed)), sealed, context)
    },
  }
}

function refuseRequest(error: unknown): never {
  throw error instanceof KeyManagementError ? fail('secrets_unavailable', { cause: error }) : error
}
