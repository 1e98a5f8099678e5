import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement about builder accounts and applications. They run as portico_owner. */
export async function insertApplication(
  tx: Tx,
  application: {
    readonly appId: string
    readonly accountId: string
    readonly appKey: string
    readonly name: string
    readonly schemaName: string
  },
): Promise<void> {
  const { appId, accountId, appKey, name, schemaName } = application
  await tx.rows(sql`INSERT INTO portico.application (app_id, account_id, app_key, name, schema_name)
    VALUES (${appId}, ${accountId}, ${appKey}, ${name}, ${schemaName})`)
  await tx.rows(sql`${raw(`CREATE SCHEMA "${schemaName}"`)}`)
  await tx.rows(sql`${raw(`GRANT USAGE ON SCHEMA "${schemaName}" TO portico_app`)}`)
  await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
}

export async function findApplications(tx: Tx): Promise<{ appId: string; appKey: string }[]> {
  return tx.rows(sql`SELECT app_id AS "appId", app_key AS "appKey" FROM portico.application ORDER BY app_key`)
}

/** The account of a builder who starts on its own: the builder, the account and the membership as its owner. */
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
  const { accountId, name, builderId, email, displayName, passwordHash } = account
  await tx.rows(sql`INSERT INTO portico.builder (builder_id, email, display_name, password_hash)
    VALUES (${builderId}, ${email}, ${displayName}, ${passwordHash})`)
  await tx.rows(
    sql`INSERT INTO portico.account (account_id, name, billing_email) VALUES (${accountId}, ${name}, ${email})`,
  )
  await tx.rows(sql`INSERT INTO portico.account_member (account_id, builder_id, role)
    VALUES (${accountId}, ${builderId}, 'owner')`)
  await tx.rows(sql`SELECT portico.bump_epoch(${accountId})`)
}

export async function existsAccount(tx: Tx, accountId: string): Promise<boolean> {
  return (await tx.rows(sql`SELECT FROM portico.account WHERE account_id = ${accountId}`)).length > 0
}

export async function insertBuilderSession(
  tx: Tx,
  session: {
    readonly keyId: string
    readonly accountId: string
    readonly builderId: string
    readonly secretHash: Buffer
    readonly expiresAt: string
    readonly revokedAt?: string | null
  },
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.builder_session (key_id, account_id, builder_id, secret_hash, expires_at, revoked_at)
    VALUES (${session.keyId}, ${session.accountId}, ${session.builderId}, ${session.secretHash}, ${session.expiresAt},
      ${session.revokedAt ?? null})`)
}
