import sql from 'sql-template-tag'
import type { BuilderRole } from '../../../kernel/scopes.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import type { SignedIn } from './schema.ts'
import type { BuilderRow } from './store.ts'

/**
 * Every SQL statement of those who have not signed in. They are bound to nothing and see no row: functions of the schema
 * answer to one exact key (migration 0008).
 */
export interface KnownBuilder extends BuilderRow {
  readonly accounts: SignedIn['accounts']
}

export async function findBuilderByEmail(tx: Tx, email: string): Promise<KnownBuilder | undefined> {
  const [builder] = await tx.rows<KnownBuilder>(sql`
    SELECT builder_id AS "builderId", email, display_name AS "displayName", password_hash AS "passwordHash",
      totp_secret AS "totpSecret", totp_confirmed_at AS "totpConfirmedAt", totp_last_step AS "totpLastStep", accounts
    FROM portico.find_builder_by_email(${email})`)
  return builder
}

/** Binds the transaction to an account of somebody who has just proven who they are; undefined where it is none of theirs. */
export async function bindMember(tx: Tx, builderId: string, accountId: string): Promise<BuilderRole | undefined> {
  const [row] = await tx.rows<{ role: BuilderRole | null }>(
    sql`SELECT portico.bind_member(${builderId}, ${accountId}) AS role`,
  )
  return row?.role ?? undefined
}

export async function findInvitationOfLink(
  tx: Tx,
  tokenHash: Buffer,
  now: string,
): Promise<{ readonly email: string } | undefined> {
  const [invitation] = await tx.rows<{ email: string }>(
    sql`SELECT email FROM portico.find_account_invitation(${tokenHash}, ${now})`,
  )
  return invitation
}

export interface AcceptedInvitation {
  readonly accountId: string
  readonly invitationId: string
  readonly role: BuilderRole
}

/** Binds the transaction to the account. Undefined: the link is good no more, and what was begun must be rolled back. */
export async function acceptInvitation(
  tx: Tx,
  accepting: {
    readonly tokenHash: Buffer
    readonly builderId: string
    readonly newcomer: { readonly displayName: string; readonly passwordHash: string } | null
    readonly now: string
  },
): Promise<AcceptedInvitation | undefined> {
  const { tokenHash, builderId, newcomer, now } = accepting
  const [accepted] = await tx.rows<AcceptedInvitation>(sql`
    SELECT account_id AS "accountId", invitation_id AS "invitationId", role
    FROM portico.accept_account_invitation(${tokenHash}, ${builderId}, ${newcomer && JSON.stringify(newcomer)}::jsonb, ${now})`)
  return accepted
}

export async function opensFirstAccount(tx: Tx, tokenHash: Buffer, now: string): Promise<boolean> {
  const [row] = await tx.rows<{ opens: boolean }>(
    sql`SELECT portico.opens_first_account(${tokenHash}, ${now}) AS opens`,
  )
  return row!.opens
}

export interface FirstAccount {
  readonly accountId: string
  readonly name: string
  readonly builderId: string
  readonly email: string
  readonly displayName: string
  readonly passwordHash: string
}

/** Binds the transaction to the account. False: somebody else was first. */
export async function acceptFirstAccount(
  tx: Tx,
  tokenHash: Buffer,
  account: FirstAccount,
  now: string,
): Promise<boolean> {
  const [row] = await tx.rows<{ made: boolean }>(sql`
    SELECT portico.accept_first_account(${tokenHash}, ${JSON.stringify(account)}::jsonb, ${now}) AS made`)
  return row!.made
}

/** Whose password is replaced, in one of their accounts. */
export interface Recovering {
  readonly builderId: string
  readonly accountId: string
  readonly email: string
  readonly displayName: string
}

/** Keeps the hash of a link, and says to whom it goes; undefined: to nobody. */
export async function requestPasswordReset(
  tx: Tx,
  reset: { readonly email: string; readonly tokenHash: Buffer; readonly now: string; readonly expiresAt: string },
): Promise<Recovering | undefined> {
  const { email, tokenHash, now, expiresAt } = reset
  const [person] = await tx.rows<Recovering>(sql`
    SELECT builder_id AS "builderId", account_id AS "accountId", email, display_name AS "displayName"
    FROM portico.request_password_reset(${email}, ${tokenHash}, ${now}, ${expiresAt})`)
  return person
}

export async function holdsPasswordReset(tx: Tx, tokenHash: Buffer, now: string): Promise<boolean> {
  const [row] = await tx.rows<{ holds: boolean }>(
    sql`SELECT portico.holds_password_reset(${tokenHash}, ${now}) AS holds`,
  )
  return row!.holds
}

/** One row for each account of the person; none: the link is good no more. */
export async function completePasswordReset(
  tx: Tx,
  tokenHash: Buffer,
  passwordHash: string,
  now: string,
): Promise<Recovering[]> {
  return tx.rows(sql`
    SELECT builder_id AS "builderId", account_id AS "accountId", email, display_name AS "displayName"
    FROM portico.complete_password_reset(${tokenHash}, ${passwordHash}, ${now})`)
}
