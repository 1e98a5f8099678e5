/** The local-file adapter: the master key lies in the data directory, made on first use. For development. */
import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseMasterKey } from '../../kernel/master-key.ts'
import { keepMasterKeys, type MasterKeys } from './master-keys.ts'
import { type KeyManagement, KeyManagementError } from './port.ts'

/** Keys that one file may hold. */
const keysMax = 10

/** `master.key` of a data directory: its first line wraps, every line unwraps. */
export function keysOfFile(masterKeys: MasterKeys): KeyManagement {
  return keepMasterKeys('master.key in the data directory', masterKeys)
}

/**
 * Reads `master.key`, one key on each line, or makes it with one key. The first is the current one; put a new key in front
 * of it to rotate. Losing the file loses every credential and every sealed secret.
 */
export async function readMasterKeyFile(dataDir: string): Promise<MasterKeys> {
  const path = join(dataDir, 'master.key')
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return makeFile(dataDir, path)
  })
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const refuse = (problem: string) => new KeyManagementError('refused', `${path} cannot be used: ${problem}.`)
  if (lines.length > keysMax) throw refuse(`it holds more than ${keysMax} keys`)
  const [current, ...previous] = lines.map((line, index) => {
    try {
      return parseMasterKey(line.trim())
    } catch (error) {
      throw refuse(`line ${index + 1} ${(error as Error).message}`)
    }
  })
  if (!current) throw refuse('it is empty; put back the key that the database was made with')
  return { current, previous }
}

/** Written whole and then given its name, which only the first of several processes can: they all read one key. */
async function makeFile(dataDir: string, path: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return readFile(path, 'utf8')
}
