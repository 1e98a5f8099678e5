import sql from 'sql-template-tag'
import type { BuilderRole } from '../../../kernel/scopes.ts'
import type { Tx } from '../../../kernel/transaction.ts'

/** SQL statements of those who hold the database: the commands of the terminal, and a start without any account. As portico_owner. */
export interface ListedAccount {
  readonly accountId: string
  readonly name: string
  readonly members: readonly { readonly email: string; readonly role: BuilderRole }[]
}

export async function findAccounts(tx: Tx): Promise<ListedAccount[]> {
  return tx.rows(sql`
    SELECT a.account_id AS "accountId", a.name,
      (SELECT coalesce(json_agg(json_build_object('email', b.email, 'role', m.role) ORDER BY m.created_at, b.email), '[]')
         FROM portico.account_member m JOIN portico.builder b ON b.builder_id = m.builder_id
        WHERE m.account_id = a.account_id) AS members
    FROM portico.account a ORDER BY a.created_at, a.account_id`)
}

export interface Person {
  readonly builderId: string
  readonly accountIds: readonly string[]
}

export async function findPerson(tx: Tx, email: string): Promise<Person | undefined> {
  const [person] = await tx.rows<Person>(sql`
    SELECT b.builder_id AS "builderId",
      ARRAY(SELECT m.account_id FROM portico.account_member m WHERE m.builder_id = b.builder_id ORDER BY 1) AS "accountIds"
    FROM portico.builder b WHERE lower(b.email) = lower(${email})`)
  return person
}

/** Statements about a person on their own (store.ts) see this one from here on. */
export async function bindPerson(tx: Tx, { builderId }: Person): Promise<void> {
  await tx.rows(sql`SELECT set_config('portico.builder_id', ${builderId}, true)`)
}

/** Replaces the password of somebody whose sessions and links all end with it. */
export async function setPassword(tx: Tx, { builderId }: Person, passwordHash: string, at: string): Promise<void> {
  await tx.rows(sql`UPDATE portico.builder SET password_hash = ${passwordHash} WHERE builder_id = ${builderId}`)
  await tx.rows(sql`SELECT portico.end_builder_sessions(${builderId}, NULL, ${at})`)
}

/** Keeps the hash of the link with which the first account is made; false where there is an account already. */
export async function offerFirstAccount(tx: Tx, tokenHash: Buffer, expiresAt: string): Promise<boolean> {
  const offered = await tx.rows(sql`
    INSERT INTO portico.installation (name, value, expires_at)
    SELECT 'first account', ${tokenHash}, ${expiresAt} WHERE NOT EXISTS (SELECT FROM portico.account)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at RETURNING 1`)
  return offered.length > 0
}
