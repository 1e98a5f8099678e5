import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../../kernel/transaction.ts'
import { installNativeObjects, type NativeObjects } from '../../../shared/modelling/native-objects.ts'

/** Every SQL statement about applications. Row-level security shows those of the bound account alone. */
export interface NewApplication {
  readonly appId: string
  readonly accountId: string
  readonly appKey: string
  readonly name: string
  readonly description?: string
  /** Holds its tables; see `newSchemaName`. */
  readonly schemaName: string
}

/**
 * Makes the application and its schema, with the tables of its native objects; with an empty one where `native` is null.
 * Runs as portico_owner.
 */
export async function insertApplication(
  tx: Tx,
  application: NewApplication,
  native: NativeObjects | null,
): Promise<void> {
  const { appId, accountId, appKey, name, description = '', schemaName } = application
  await tx.rows(sql`INSERT INTO portico.application (app_id, account_id, app_key, name, description, schema_name)
    VALUES (${appId}, ${accountId}, ${appKey}, ${name}, ${description}, ${schemaName})`)
  await tx.rows(sql`${raw(`CREATE SCHEMA "${schemaName}"`)}`)
  await tx.rows(sql`${raw(`GRANT USAGE ON SCHEMA "${schemaName}" TO portico_app`)}`)
  await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
  if (native) await installNativeObjects(tx, appId, native)
}

/** The applications of all accounts, by key. Runs as portico_owner, for commands. */
export async function findApplications(tx: Tx): Promise<{ appId: string; appKey: string }[]> {
  return tx.rows(sql`SELECT app_id AS "appId", app_key AS "appKey" FROM portico.application ORDER BY app_key, app_id`)
}

export interface ApplicationRow {
  readonly saasAppId: string
  readonly appKey: string
  readonly name: string
  readonly description: string
  /** The newest release of its model; 0 before the first. */
  readonly releaseNumber: number
  readonly archivedAt: string | null
  readonly revision: number
  readonly createdAt: string
}

const columns = raw(`a.app_id AS "saasAppId", a.app_key AS "appKey", a.name, a.description,
  coalesce((SELECT max(r.release_number) FROM portico.model_release r WHERE r.app_id = a.app_id), 0) AS "releaseNumber",
  a.archived_at AS "archivedAt", a.revision, a.created_at AS "createdAt"`)

/** By key; keys are unique within the account. */
export async function findApplicationsOf(
  tx: Tx,
  wanted: { readonly accountId: string; readonly archived: boolean },
  after: string | null,
  limit: number,
): Promise<ApplicationRow[]> {
  return tx.rows(sql`SELECT ${columns} FROM portico.application a
    WHERE a.account_id = ${wanted.accountId}
      AND (a.archived_at IS NOT NULL) = ${wanted.archived}
      AND a.app_key COLLATE "C" > ${after ?? ''}
    ORDER BY a.app_key COLLATE "C" LIMIT ${limit}`)
}

export async function findApplication(
  tx: Tx,
  accountId: string,
  saasAppId: string,
): Promise<ApplicationRow | undefined> {
  const [row] = await tx.rows<ApplicationRow>(sql`SELECT ${columns} FROM portico.application a
    WHERE a.account_id = ${accountId} AND a.app_id = ${saasAppId}`)
  return row
}

/** Holds everybody else who changes the application, its draft or its organisations' roles until the end. */
export async function lockApplication(tx: Tx, accountId: string, saasAppId: string): Promise<void> {
  await tx.rows(sql`SELECT FROM portico.application
    WHERE account_id = ${accountId} AND app_id = ${saasAppId} FOR NO KEY UPDATE`)
}

export async function updateApplication(
  tx: Tx,
  accountId: string,
  application: Pick<ApplicationRow, 'saasAppId' | 'name' | 'description' | 'archivedAt'>,
): Promise<void> {
  const { saasAppId, name, description, archivedAt } = application
  await tx.rows(sql`UPDATE portico.application SET name = ${name}, description = ${description},
      archived_at = ${archivedAt}, revision = revision + 1
    WHERE account_id = ${accountId} AND app_id = ${saasAppId}`)
}

/** Its credentials are read anew with their next request. */
export async function bumpApplication(tx: Tx, saasAppId: string): Promise<void> {
  await tx.rows(sql`SELECT portico.bump_epoch(${saasAppId})`)
}
