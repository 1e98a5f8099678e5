import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import type { Database } from '../database/database.ts'
import { documentOf, isInDocument } from '../records/search-document.ts'

/** In one transaction; a batch takes some 20 ms, and a writer who wants one of its records waits that long. */
const batchSize = 200

/**
 * Writes the search documents of an object anew, organisation by organisation, because its searchable fields changed.
 * Records that are written meanwhile get theirs from the request that writes them; locking the rows of a batch keeps the
 * older of the two from winning. Until it is done, words of old records may be missing, or be found that no longer should.
 */
export async function rebuildSearchDocuments(
  database: Database,
  appId: string,
  object: ObjectDefinition,
): Promise<void> {
  // What a native object is found by is worked out by its behaviour; who has none leaves it to the service's next start.
  if (object.kind === 'native' && !object.behaviour) return
  const organizations = await database.as('portico_owner', (tx) =>
    tx.rows<{ id: string }>(
      sql`SELECT organization_id AS id FROM portico.organization WHERE app_id = ${appId} ORDER BY organization_id`,
    ),
  )
  for (const { id } of organizations) {
    let after: string | undefined = '00000000-0000-0000-0000-000000000000'
    while (after !== undefined) {
      const from: string = after
      after = await database.inOrganization(id, (tx) => rebuildBatch(tx, id, object, from))
    }
  }
  await database.as('portico_owner', async (tx) => {
    await tx.rows(sql`UPDATE portico.object_definition SET search_state = 'ready'
      WHERE app_id = ${appId} AND object_id = ${object.objectId}`)
    await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
  })
}

/** Returns the last record of the batch; undefined where none is left. */
async function rebuildBatch(
  tx: Tx,
  organizationId: string,
  object: ObjectDefinition,
  after: string,
): Promise<string | undefined> {
  const searched = object.fields.filter((field) => isInDocument(object, field))
  const columns = searched.map((field) => `, "${field.column}"`).join('')
  const rows = await tx.rows<Record<string, unknown> & { record_id: string }>(sql`
    SELECT record_id${raw(columns)} FROM ${raw(object.table)}
    WHERE organization_id = ${organizationId} AND record_id > ${after}::uuid AND archived_at IS NULL
    ORDER BY record_id LIMIT ${batchSize} FOR NO KEY UPDATE`)
  const documents = rows.flatMap((row) => {
    const document = documentOf(object, (field) => row[field.column])
    return document ? [{ recordId: row.record_id, ...document }] : []
  })
  // Deleted and inserted: whoever is bound to an organisation may not read contents, and so not update by them.
  await tx.rows(sql`DELETE FROM portico.search_document
    WHERE organization_id = ${organizationId} AND record_id = ANY (${rows.map((row) => row.record_id)}::uuid[])`)
  await tx.rows(sql`INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title,
      owner_user_id, data_role_id, location_id, updated_at, created_at, participant_ids)
    SELECT t.organization_id, ${object.objectId}, t.record_id, r.content, r.title,
      t.owner_user_id, t.data_role_id, t.location_id, t.updated_at, t.created_at,
      ARRAY(SELECT p.user_id FROM portico.record_participant p
        WHERE p.organization_id = ${organizationId} AND p.record_id = t.record_id)
    FROM json_to_recordset(${JSON.stringify(documents)}::json) AS r ("recordId" uuid, content text, title text)
    JOIN ${raw(object.table)} t ON t.organization_id = ${organizationId} AND t.record_id = r."recordId"`)
  return rows.at(-1)?.record_id
}
