/**
 * The operating-system account that PostgreSQL runs under.
 *
 * PostgreSQL refuses to run as root, so a service that runs as root hands it to an account without rights.
 */
import { readFile, stat } from 'node:fs/promises'
import { dirname, parse } from 'node:path'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** In this order: the account that a PostgreSQL package would use, else the one that owns nothing. */
const candidates = ['postgres', 'nobody']

async function readAccounts(passwdFile: string): Promise<Account[]> {
  const lines = (await readFile(passwdFile, 'utf8').catch(() => '')).split('\n')
  return lines.flatMap((line) => {
    const [name, , uid, gid] = line.split(':')
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : []
  })
}

/** The account for a new cluster made by root; `undefined` when the machine has none that would do. */
export async function findUnprivilegedAccount(passwdFile: string): Promise<Account | undefined> {
  const accounts = await readAccounts(passwdFile)
  for (const name of candidates) {
    const found = accounts.find((account) => account.name === name && account.uid !== 0)
    if (found) return found
  }
  return undefined
}

/** The owner of a file or folder, by name where it has one. */
export async function ownerOf(path: string, passwdFile: string): Promise<Account> {
  const { uid, gid } = await stat(path)
  const named = (await readAccounts(passwdFile)).find((account) => account.uid === uid)
  return { name: named?.name ?? `user ${uid}`, uid, gid }
}

/**
 * Whether an account may pass through a folder and all folders above it.
 *
 * Computed from the permission bits. An access-control list can grant more than the bits say; then the caller puts
 * the files where they surely can be reached, which is right too, only elsewhere.
 */
export async function mayReach(account: Account, folder: string): Promise<boolean> {
  for (let at = folder; ; at = dirname(at)) {
    const { mode, uid, gid } = await stat(at)
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (at === parse(at).root) return true
  }
}
