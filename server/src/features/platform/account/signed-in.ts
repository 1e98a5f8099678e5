import type { Reply } from '../../../kernel/operation.ts'
import type { BuilderRole } from '../../../kernel/scopes.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import { recordAudit } from '../../../shared/audit.ts'
import type { VisitorContext } from '../../../shared/platform-context.ts'
import { sessionMs, sessionsMax } from './rules.ts'
import type { SignedIn } from './schema.ts'
import { endSurplusSessions, insertBuilderSession } from './session-store.ts'
import { findAccount } from './store.ts'

/** Who begins a session, and as what. */
export interface Entrant {
  readonly builderId: string
  readonly email: string
  readonly displayName: string
  readonly totpEnabled: boolean
  readonly accountId: string
  readonly role: BuilderRole
  /** Those that were known before; the one that is entered is added where it is missing. */
  readonly accounts: SignedIn['accounts']
}

/** What the audit log calls them. */
export function callerOf({ accountId, builderId }: Pick<Entrant, 'accountId' | 'builderId'>) {
  return { accountId, actor: { kind: 'builder', id: builderId } as const }
}

/** Begins a session in the transaction, which must be bound to the account, and answers with its token. */
export async function beginSession(
  context: VisitorContext,
  tx: Tx,
  entrant: Entrant,
  label = '',
): Promise<Reply & { readonly body: SignedIn }> {
  const { mint, now, address, userAgent, correlationId } = context
  const { builderId, email, displayName, totpEnabled, accountId, role } = entrant
  const { keyId, secretHash, text } = mint.token('bld')
  const createdAt = new Date(now).toISOString()
  // Before the new one, which must not be among those that give way.
  await endSurplusSessions(tx, entrant, sessionsMax - 1, createdAt)
  const row = await insertBuilderSession(tx, {
    keyId,
    accountId,
    builderId,
    secretHash,
    createdAt,
    expiresAt: new Date(now + sessionMs).toISOString(),
    label,
    userAgent: userAgent.slice(0, 500),
    address,
  })
  const { name } = await findAccount(tx, { accountId })
  const session = { ...row, current: true }
  await recordAudit(
    { tx, caller: callerOf(entrant), correlationId, now },
    { action: 'session.created', target: { type: 'session', id: keyId }, after: session },
  )
  const builder = { builderId, email, displayName, totpEnabled }
  const known = entrant.accounts.some((account) => account.accountId === accountId)
  const accounts = known ? entrant.accounts : [...entrant.accounts, { accountId, name, role }]
  return { status: 201, body: { token: text, session, account: { accountId, name }, builder, role, accounts } }
}
