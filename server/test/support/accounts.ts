import { insertAccount } from '../../src/features/platform/account/store.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import type { Database } from '../../src/shared/database/database.ts'

/** A builder account with its owner. Nobody can sign in to it: its password is no hash. */
export async function createAccount(
  database: Database,
): Promise<{ accountId: string; builderId: string; email: string }> {
  const accountId = uuidv7(Date.now())
  const builderId = uuidv7(Date.now())
  const email = `builder-${builderId.slice(-8)}@portico.example`
  const person = { name: 'Test account', builderId, email, displayName: 'Test builder', passwordHash: 'none' }
  await database.as('portico_owner', (tx) => insertAccount(tx, { accountId, ...person }))
  return { accountId, builderId, email }
}
