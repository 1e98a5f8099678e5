import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newLinkSecret } from './features/platform/account/rules.ts'
import { offerFirstAccount } from './features/platform/account/terminal-store.ts'
import type { Clock } from './kernel/clock.ts'
import type { Database } from './shared/database/database.ts'
import { createMint } from './shared/identity/mint.ts'

const goodForMs = 60 * 60_000

/**
 * What a service without any account says when it starts: how the first one is made. The token for that is in a file for
 * its operator, because what is printed ends up in logs. It is good for an hour and for one account, and replaces that of
 * an earlier start; what the database keeps of it is a hash. Undefined where there is an account.
 */
export async function inviteFirstAccount({
  database,
  pepper,
  clock,
  dataDir,
  baseUrl,
}: {
  readonly database: Database
  readonly pepper: Uint8Array
  readonly clock: Clock
  readonly dataDir: string
  /** Where the service is reached. */
  readonly baseUrl: string
}): Promise<string | undefined> {
  const token = newLinkSecret()
  const expiresAt = new Date(clock.now() + goodForMs).toISOString()
  const tokenHash = createMint(pepper).hashOf(token)
  const offered = await database.as('portico_owner', (tx) => offerFirstAccount(tx, tokenHash, expiresAt))
  const path = join(dataDir, 'setup-token')
  if (!offered) {
    await rm(path, { force: true })
    return undefined
  }
  await writeFile(path, `${token}\n`, { mode: 0o600 })
  return `There is no account yet. Make the first one: npm run account -- create, or within the hour at ${baseUrl}/accept-invitation, with the token in ${path}.`
}
