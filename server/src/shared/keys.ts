import { hkdfSync, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Keys of the service, all derived from one master key of 32 bytes (HKDF-SHA256, RFC 5869): what one purpose leaks is
 * useless to another, and there is one thing to keep and to back up.
 */
export interface Keys {
  /** Hashes the secrets of credentials. */
  readonly pepper: Uint8Array
  /** Signs cursors. */
  readonly cursors: Uint8Array
}

export function deriveKeys(master: Uint8Array): Keys {
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', master, '', `portico ${purpose}`, 32))
  return { pepper: derive('credential pepper'), cursors: derive('cursors') }
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
