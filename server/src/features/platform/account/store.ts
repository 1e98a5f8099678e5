import sql from 'sql-template-tag'
import type { BuilderCaller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import type { Account } from './schema.ts'

/**
 * Every SQL statement about an account and the person who works in it. Row-level security shows the bound account alone, and
 * `own_builder` the bound person: passwords and second factors of other members are out of reach.
 */
type Self = Pick<BuilderCaller, 'accountId' | 'builderId'>

/** A builder on their own: the person, the account, and the membership as its owner. Runs as portico_owner. */
export async function insertAccount(
  tx: Tx,
  account: {
    readonly accountId: string
    readonly name: string
    readonly builderId: string
    readonly email: string
    readonly displayName: string
    readonly passwordHash: string
  },
): Promise<void> {
  await tx.rows(sql`SELECT portico.insert_account(${JSON.stringify(account)}::jsonb, now())`)
}

/** Runs as portico_owner. */
export async function existsAccount(tx: Tx, accountId: string): Promise<boolean> {
  return (await tx.rows(sql`SELECT FROM portico.account WHERE account_id = ${accountId}`)).length > 0
}

export async function findAccount(tx: Tx, { accountId }: Pick<Self, 'accountId'>): Promise<Account> {
  const [account] = await tx.rows<Account>(sql`
    SELECT account_id AS "accountId", name, billing_email AS "billingEmail", plan_key AS "planKey", revision,
      created_at AS "createdAt"
    FROM portico.account WHERE account_id = ${accountId}`)
  return account!
}

/** Holds everybody else who changes the account or its team until this transaction is over. */
export async function lockAccount(tx: Tx, { accountId }: Pick<Self, 'accountId'>): Promise<void> {
  await tx.rows(sql`SELECT FROM portico.account WHERE account_id = ${accountId} FOR NO KEY UPDATE`)
}

export async function updateAccount(
  tx: Tx,
  { accountId, name, billingEmail }: Pick<Account, 'accountId' | 'name' | 'billingEmail'>,
): Promise<void> {
  await tx.rows(sql`UPDATE portico.account SET name = ${name}, billing_email = ${billingEmail}, revision = revision + 1
    WHERE account_id = ${accountId}`)
}

/** A person, with what their password and their codes are held against. */
export interface BuilderRow {
  readonly builderId: string
  readonly email: string
  readonly displayName: string
  readonly passwordHash: string
  /** Sealed; confirmed when the first code was right. */
  readonly totpSecret: Buffer | null
  readonly totpConfirmedAt: string | null
  readonly totpLastStep: number | null
}

/** `lock` holds those who change the same person until this transaction is over. */
export async function findSelf(tx: Tx, { builderId }: Self, lock?: 'lock'): Promise<BuilderRow> {
  const statement = sql`
    SELECT builder_id AS "builderId", email, display_name AS "displayName", password_hash AS "passwordHash",
      totp_secret AS "totpSecret", totp_confirmed_at AS "totpConfirmedAt", totp_last_step AS "totpLastStep"
    FROM portico.own_builder WHERE builder_id = ${builderId}`
  const [builder] = await tx.rows<BuilderRow>(lock ? sql`${statement} FOR NO KEY UPDATE` : statement)
  return builder!
}

export async function updateDisplayName(tx: Tx, { builderId }: Self, displayName: string): Promise<void> {
  await tx.rows(sql`UPDATE portico.own_builder SET display_name = ${displayName} WHERE builder_id = ${builderId}`)
}

/** Only from the password that was just proven: false when it was changed in the meantime. */
export async function replacePassword(
  tx: Tx,
  { builderId }: Pick<Self, 'builderId'>,
  hashes: { readonly from: string; readonly to: string },
): Promise<boolean> {
  const rows = await tx.rows(sql`UPDATE portico.own_builder SET password_hash = ${hashes.to}
    WHERE builder_id = ${builderId} AND password_hash = ${hashes.from} RETURNING 1`)
  return rows.length > 0
}

/** A second factor that is not confirmed yet; false when there is a confirmed one. */
export async function enrollTotp(tx: Tx, { builderId }: Self, sealed: Buffer): Promise<boolean> {
  const rows = await tx.rows(sql`UPDATE portico.own_builder SET totp_secret = ${sealed}, totp_last_step = NULL
    WHERE builder_id = ${builderId} AND totp_confirmed_at IS NULL RETURNING 1`)
  return rows.length > 0
}

export async function confirmTotp(
  tx: Tx,
  { builderId }: Self,
  { step, codeHashes, at }: { readonly step: number; readonly codeHashes: readonly Buffer[]; readonly at: string },
): Promise<void> {
  await tx.rows(sql`UPDATE portico.own_builder SET totp_confirmed_at = ${at}, totp_last_step = ${step}
    WHERE builder_id = ${builderId}`)
  await tx.rows(sql`INSERT INTO portico.builder_recovery_code (builder_id, code_hash)
    SELECT ${builderId}, unnest(${codeHashes}::bytea[])`)
}

export async function removeTotp(tx: Tx, { builderId }: Pick<Self, 'builderId'>): Promise<void> {
  await tx.rows(sql`UPDATE portico.own_builder SET totp_secret = NULL, totp_confirmed_at = NULL, totp_last_step = NULL
    WHERE builder_id = ${builderId}`)
  await tx.rows(sql`DELETE FROM portico.builder_recovery_code WHERE builder_id = ${builderId}`)
}

/** What a code was good for: nothing was asked, a time step, or a recovery code. */
export type ProvenFactor =
  | { readonly kind: 'none' }
  | { readonly kind: 'step'; readonly step: number }
  | { readonly kind: 'recovery'; readonly codeHash: Buffer }

/**
 * Uses the factor up, and finds out whether the password that was proven before this transaction is still the one. False:
 * it is not, or the code was used a moment ago.
 */
export async function claimFactor(
  tx: Tx,
  { builderId, passwordHash }: Pick<BuilderRow, 'builderId' | 'passwordHash'>,
  factor: ProvenFactor,
): Promise<boolean> {
  const [now] = await tx.rows<{ confirmed: boolean; lastStep: number | null }>(sql`
    SELECT totp_confirmed_at IS NOT NULL AS confirmed, totp_last_step AS "lastStep" FROM portico.own_builder
    WHERE builder_id = ${builderId} AND password_hash = ${passwordHash} FOR NO KEY UPDATE`)
  if (!now || now.confirmed !== (factor.kind !== 'none')) return false
  if (factor.kind === 'none') return true
  if (factor.kind === 'recovery') {
    const used = await tx.rows(sql`DELETE FROM portico.builder_recovery_code
      WHERE builder_id = ${builderId} AND code_hash = ${factor.codeHash} RETURNING 1`)
    return used.length > 0
  }
  if (now.lastStep !== null && factor.step <= now.lastStep) return false
  await tx.rows(sql`UPDATE portico.own_builder SET totp_last_step = ${factor.step} WHERE builder_id = ${builderId}`)
  return true
}
