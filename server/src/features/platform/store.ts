import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement about builder accounts and applications. They run as portico_owner. */
export async function insertApplication(
  tx: Tx,
  application: { readonly appId: string; readonly appKey: string; readonly name: string; readonly schemaName: string },
): Promise<void> {
  const { appId, appKey, name, schemaName } = application
  await tx.rows(sql`INSERT INTO portico.application (app_id, app_key, name, schema_name)
    VALUES (${appId}, ${appKey}, ${name}, ${schemaName})`)
  await tx.rows(sql`${raw(`CREATE SCHEMA "${schemaName}"`)}`)
  await tx.rows(sql`${raw(`GRANT USAGE ON SCHEMA "${schemaName}" TO portico_app`)}`)
  await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
}

export async function findApplications(tx: Tx): Promise<{ appId: string; appKey: string }[]> {
  return tx.rows(sql`SELECT app_id AS "appId", app_key AS "appKey" FROM portico.application ORDER BY app_key`)
}

export async function insertBuilderAccount(
  tx: Tx,
  account: { readonly accountId: string; readonly email: string; readonly passwordHash: string },
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.builder_account (account_id, email, password_hash)
    VALUES (${account.accountId}, ${account.email}, ${account.passwordHash})`)
}

export async function insertBuilderSession(
  tx: Tx,
  session: {
    readonly keyId: string
    readonly accountId: string
    readonly secretHash: Buffer
    readonly expiresAt: string
  },
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.builder_session (key_id, account_id, secret_hash, expires_at)
    VALUES (${session.keyId}, ${session.accountId}, ${session.secretHash}, ${session.expiresAt})`)
}
