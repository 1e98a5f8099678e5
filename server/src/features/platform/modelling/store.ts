import sql from 'sql-template-tag'
import type { Tx } from '../../../kernel/transaction.ts'
import type { ChangeView } from '../../../shared/modelling/changes.ts'
import type { ModelDocument } from '../../../shared/modelling/document.ts'

/** Every SQL statement about drafts and the releases of models. Both are the account's alone. */
/** A draft as it is kept. */
export interface KeptDraft {
  readonly document: ModelDocument
  readonly revision: number
  readonly basedOnRelease: number
  readonly updatedAt: string
  /** A builder. */
  readonly updatedBy: string
}

export interface DraftRow extends KeptDraft {
  /** Of the application; 0 before the first. */
  readonly newestRelease: number
}

export interface Place {
  readonly accountId: string
  readonly appId: string
}

const ofAccount = ({ accountId, appId }: Place) =>
  sql`app_id = (SELECT a.app_id FROM portico.application a WHERE a.app_id = ${appId} AND a.account_id = ${accountId})`

export async function findDraft(tx: Tx, place: Place): Promise<DraftRow | undefined> {
  const [row] = await tx.rows<DraftRow>(sql`
    SELECT document, revision, based_on_release AS "basedOnRelease", updated_at AS "updatedAt", updated_by AS "updatedBy",
      coalesce((SELECT max(r.release_number) FROM portico.model_release r WHERE r.app_id = d.app_id), 0) AS "newestRelease"
    FROM portico.model_draft d WHERE ${ofAccount(place)}`)
  return row
}

export async function saveDraft(tx: Tx, place: Place, draft: KeptDraft): Promise<void> {
  const { document, revision, basedOnRelease, updatedAt, updatedBy } = draft
  await tx.rows(sql`
    INSERT INTO portico.model_draft (app_id, document, revision, based_on_release, updated_at, updated_by)
    VALUES (${place.appId}, ${JSON.stringify(document)}::jsonb, ${revision}, ${basedOnRelease}, ${updatedAt}, ${updatedBy})
    ON CONFLICT (app_id) DO UPDATE SET document = excluded.document, revision = excluded.revision,
      based_on_release = excluded.based_on_release, updated_at = excluded.updated_at, updated_by = excluded.updated_by`)
}

export async function deleteDraft(tx: Tx, place: Place): Promise<void> {
  await tx.rows(sql`DELETE FROM portico.model_draft WHERE ${ofAccount(place)}`)
}

export interface ReleaseRow {
  readonly releaseNumber: number
  readonly note: string
  readonly changes: readonly ChangeView[]
  readonly rolledBackTo: number | null
  readonly publishedAt: string
  readonly publishedBy: string | null
}

const columns = sql`release_number AS "releaseNumber", note, changes, rolled_back_to AS "rolledBackTo",
  published_at AS "publishedAt", published_by AS "publishedBy"`

/** Newest first. */
export async function findReleases(tx: Tx, place: Place, before: string | null, limit: number): Promise<ReleaseRow[]> {
  return tx.rows(sql`SELECT ${columns} FROM portico.model_release
    WHERE ${ofAccount(place)} AND (${before}::bigint IS NULL OR release_number < ${before}::bigint)
    ORDER BY release_number DESC LIMIT ${limit}`)
}

export async function findRelease(
  tx: Tx,
  place: Place,
  releaseNumber: string,
): Promise<(ReleaseRow & { readonly document: ModelDocument }) | undefined> {
  const [row] = await tx.rows<ReleaseRow & { document: ModelDocument }>(sql`SELECT ${columns}, document
    FROM portico.model_release WHERE ${ofAccount(place)} AND release_number = ${releaseNumber}::bigint`)
  return row
}
