import { hkdfSync, randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { KeyManagementError } from '../ports/key-management/port.ts'
import type { Database } from './database/database.ts'
import { openSecrets, type Secrets, type SecretsParts } from './secrets.ts'

/**
 * Keys that the service itself works with, 32 bytes each: what one purpose leaks is useless to another. They are made once
 * and kept sealed, so that they outlive the master key.
 */
export interface Keys {
  /** Hashes the secrets of credentials. */
  readonly pepper: Uint8Array
  /** Signs cursors. */
  readonly cursors: Uint8Array
}

/** The keys of an installation that derived them from its master key at every start (HKDF-SHA256, RFC 5869). */
export function deriveKeys(master: Uint8Array): Keys {
  return { pepper: derive(master, 'credential pepper'), cursors: derive(master, 'cursors') }
}

/** A key of 32 bytes for one purpose, from another key. */
export function derive(master: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', master, '', `portico ${purpose}`, 32))
}

export interface KeysParts extends SecretsParts {
  /** The master keys that are in this process, the current one first; none when it is somebody else who holds it. */
  readonly masterKeys: readonly Uint8Array[]
}

/**
 * Opens the secrets of the database and the keys of the service, making both in a new one. Throws a `KeyManagementError`
 * where the key that was configured is not the one of this database: with another one the service would start, and answer
 * every credential with 401.
 */
export async function openKeys(parts: KeysParts): Promise<{ readonly keys: Keys; readonly secrets: Secrets }> {
  const { database } = parts
  const known = await readInstallation(database)
  // Before anything is sealed under a master key that would then be taken for the right one.
  const made = known.serviceKeys ? undefined : firstKeys(parts.masterKeys, known)
  const secrets = await openSecrets(parts)
  if (made) await keepServiceKeys(database, await secrets.seal(encode(made), sealContext))
  const { serviceKeys } = made ? await readInstallation(database) : known
  return { keys: decode(await secrets.open(serviceKeys!, sealContext)), secrets }
}

/**
 * Random ones for a new database. Until they were kept, these keys were derived from the master key, and the credentials
 * of an installation depend on that: then the same keys are kept. It remembered its master key by a check value.
 */
function firstKeys(masterKeys: readonly Uint8Array[], { masterKeyCheck: check, isUsed }: Installation): Keys {
  if (!check && !isUsed) return { pepper: randomBytes(keyBytes), cursors: randomBytes(keyBytes) }
  const master = check ? masterKeys.find((one) => check.equals(derive(one, 'check'))) : masterKeys[0]
  if (master) return deriveKeys(master)
  throw new KeyManagementError(
    'unknown_key',
    'This database was made with another master key, and its credentials can be verified with that key alone. ' +
      'Configure it: PORTICO_MASTER_KEY, PORTICO_MASTER_KEY_PREVIOUS, or master.key in the data directory.',
  )
}

const sealContext = ['portico', 'installation', 'service keys']
const keyBytes = 32

function encode({ pepper, cursors }: Keys): Buffer {
  return Buffer.concat([pepper, cursors])
}

function decode(bytes: Buffer): Keys {
  return { pepper: bytes.subarray(0, keyBytes), cursors: bytes.subarray(keyBytes, 2 * keyBytes) }
}

interface Installation {
  readonly serviceKeys: Buffer | null
  readonly masterKeyCheck: Buffer | null
  /** Somebody has made an application, which is where credentials begin. */
  readonly isUsed: boolean
}

async function readInstallation(database: Database): Promise<Installation> {
  const [row] = await database.as('portico_owner', (tx) =>
    tx.rows<Installation>(sql`SELECT
      (SELECT value FROM portico.installation WHERE name = 'service keys') AS "serviceKeys",
      (SELECT value FROM portico.installation WHERE name = 'master key') AS "masterKeyCheck",
      EXISTS (SELECT FROM portico.application) AS "isUsed"`),
  )
  return row!
}

/** The first of several processes decides. From here on the master key may change, so the check value goes. */
async function keepServiceKeys(database: Database, sealed: Buffer): Promise<void> {
  await database.as('portico_owner', (tx) =>
    Promise.all([
      tx.rows(sql`INSERT INTO portico.installation (name, value) VALUES ('service keys', ${sealed})
        ON CONFLICT (name) DO NOTHING`),
      tx.rows(sql`DELETE FROM portico.installation WHERE name = 'master key'`),
    ]),
  )
}
