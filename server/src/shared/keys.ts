import { hkdfSync, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sql from 'sql-template-tag'
import type { Database } from './database/database.ts'

/**
 * Keys of the service, all derived from one master key of 32 bytes (HKDF-SHA256, RFC 5869): what one purpose leaks is
 * useless to another, and there is one thing to keep and to back up.
 */
export interface Keys {
  /** Hashes the secrets of credentials. */
  readonly pepper: Uint8Array
  /** Signs cursors. */
  readonly cursors: Uint8Array
  /** Tells one master key from another, and nothing else. */
  readonly check: Uint8Array
}

export function deriveKeys(master: Uint8Array): Keys {
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', master, '', `portico ${purpose}`, 32))
  return { pepper: derive('credential pepper'), cursors: derive('cursors'), check: derive('check') }
}

/** The database was made with another master key. */
export class WrongMasterKey extends Error {
  override readonly name = 'WrongMasterKey'
}

/**
 * Refuses a master key that is not the one of this database: with another one the service would start, and answer every
 * credential with 401.
 */
export async function requireSameMasterKey(database: Database, { check }: Keys): Promise<void> {
  const [row] = await database.as('portico_owner', async (tx) => {
    await tx.rows(sql`INSERT INTO portico.installation (name, value) VALUES ('master key', ${Buffer.from(check)})
      ON CONFLICT (name) DO NOTHING`)
    return tx.rows<{ value: Buffer }>(sql`SELECT value FROM portico.installation WHERE name = 'master key'`)
  })
  if (!row?.value.equals(check)) {
    throw new WrongMasterKey(
      'PORTICO_MASTER_KEY (or master.key in the data directory) is not the key that this database was made with. ' +
        'Its credentials can be verified with that key alone.',
    )
  }
}

/** Reads a master key as people configure it: 64 hex digits, or 32 bytes in base64. */
export function parseMasterKey(text: string): Uint8Array {
  const bytes = /^[0-9a-f]{64}$/i.test(text.trim())
    ? Buffer.from(text.trim(), 'hex')
    : Buffer.from(text.trim(), 'base64')
  if (bytes.length !== 32) throw new Error('The master key must be 32 bytes: 64 hex digits, or base64.')
  return bytes
}

/** The master key of a development data directory, made on first use. Losing it invalidates every credential. */
export async function masterKeyOf(dataDir: string): Promise<Uint8Array> {
  const path = join(dataDir, 'master.key')
  try {
    return parseMasterKey(await readFile(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const key = randomBytes(32)
  await writeFile(path, `${key.toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  return key
}
