import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { type KeyManagement, KeyManagementError, type WrappedKey } from '../ports/key-management/port.ts'
import type { Database } from './database/database.ts'

/** A row of `portico.data_key`. */
export interface StoredDataKey extends WrappedKey {
  readonly dataKeyId: number
  /** When it was made: ISO 8601, UTC. */
  readonly createdAt: string
}

/**
 * Where data keys are kept and who unwraps them: the first of `keyManagement` wraps, and every one unwraps what it holds
 * the key of, so that the service can move from one to another.
 */
export interface DataKeyParts {
  readonly database: Database
  readonly keyManagement: readonly [KeyManagement, ...KeyManagement[]]
}

/** All data keys, the oldest first. The last one seals. */
export function readDataKeys(database: Database): Promise<StoredDataKey[]> {
  return database.as('portico_owner', (tx) =>
    tx.rows<StoredDataKey>(sql`SELECT data_key_id AS "dataKeyId", wrapped, key_id AS "keyId",
      created_at AS "createdAt" FROM portico.data_key ORDER BY data_key_id`),
  )
}

/** Unwraps one. Throws a `KeyManagementError`. */
export async function unwrapDataKey({ keyManagement }: DataKeyParts, stored: StoredDataKey): Promise<KeyObject> {
  const { dataKeyId, keyId } = stored
  const holder = keyManagement.find((one) => one.holds(keyId))
  if (!holder) throw new KeyManagementError('unknown_key', wrongKey(keyId, keyManagement))
  const bytes = await holder.unwrap(stored, contextOf(dataKeyId))
  const key = createSecretKey(bytes)
  bytes.fill(0)
  return key
}

function wrongKey(keyId: string, keyManagement: DataKeyParts['keyManagement']): string {
  return (
    `The secrets of this database are sealed under the key ${keyId}, which is not configured. Here are only: ` +
    `${keyManagement.map(({ place }) => place).join(', ')}. Configure the key that the database was made with, or ` +
    'that it was last re-wrapped under (docs/secrets.md): its credentials and secrets can be read with that key alone.'
  )
}

/**
 * Makes the data key with that number, unless another process has made it in the meantime; then that one holds. The
 * network is waited for between two transactions, so a unique number decides and not a lock.
 */
export async function makeDataKey({ database, keyManagement: [current] }: DataKeyParts, id: number): Promise<void> {
  const bytes = randomBytes(32)
  const { wrapped, keyId } = await current.wrap(bytes, contextOf(id))
  bytes.fill(0)
  await database.as('portico_owner', (tx) =>
    tx.rows(sql`INSERT INTO portico.data_key (data_key_id, wrapped, key_id) VALUES (${id}, ${wrapped}, ${keyId})
      ON CONFLICT (data_key_id) DO NOTHING`),
  )
}

/**
 * A new data key for everything that is sealed from now on; returns its number. What was sealed before keeps opening.
 * Running processes follow within a minute, or with the first value of it that they meet.
 */
export async function rotateDataKey(parts: DataKeyParts): Promise<number> {
  const last = (await readDataKeys(parts.database)).at(-1)
  const next = (last?.dataKeyId ?? 0) + 1
  await makeDataKey(parts, next)
  return next
}

/**
 * Wraps every data key anew that is not under the current key of the first key management: the end of a rotation of the
 * master key, after which the previous one is not needed any more. Values stay as they are. Returns how many; safe to
 * repeat, and to run twice at once.
 */
export async function rewrapDataKeys(parts: DataKeyParts): Promise<number> {
  const { database, keyManagement } = parts
  const [current] = keyManagement
  const currentId = await current.currentKeyId()
  const outdated = (await readDataKeys(database)).filter(({ keyId }) => keyId !== currentId)
  for (const stored of outdated) {
    const key = await unwrapDataKey(parts, stored)
    const { wrapped, keyId } = await current.wrap(key.export(), contextOf(stored.dataKeyId))
    await database.as('portico_owner', (tx) =>
      tx.rows(sql`UPDATE portico.data_key SET wrapped = ${wrapped}, key_id = ${keyId}, wrapped_at = now()
        WHERE data_key_id = ${stored.dataKeyId} AND wrapped = ${stored.wrapped}`),
    )
  }
  return outdated.length
}

/** Rows cannot be exchanged for each other. */
function contextOf(dataKeyId: number): string {
  return `portico data key ${dataKeyId}`
}
