import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import type { Database } from '../database/database.ts'
import { documentOf } from '../records/insert.ts'

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
  const searched = object.fields.filter((field) => field.searchTag !== null)
  const columns = searched.map((field) => `, "${field.column}"`).join('')
  const rows = await tx.rows<Record<string, unknown> & { record_id: string }>(sql`
    SELECT record_id${raw(columns)} FROM ${raw(object.table)}
    WHERE organization_id = ${organizationId} AND record_id > ${after}::uuid AND archived_at IS NULL
    ORDER BY record_id LIMIT ${batchSize} FOR NO KEY UPDATE`)
  const documents = rows.map((row) => ({
    recordId: row.record_id,
    content: documentOf(object, (field) => row[field.column]),
  }))
  const filled = documents.filter(({ content }) => content !== null)
  const empty = documents.filter(({ content }) => content === null).map(({ recordId }) => recordId)
  // Deleted and inserted: whoever is bound to an organisation may not read contents, and so not update by them.
  await tx.rows(sql`DELETE FROM portico.search_document
    WHERE organization_id = ${organizationId} AND record_id = ANY (${[...filled.map((one) => one.recordId), ...empty]}::uuid[])`)
  await tx.rows(sql`INSERT INTO portico.search_document (organization_id, object_id, record_id, content)
    SELECT ${organizationId}, ${object.objectId}, r."recordId", r.content
    FROM json_to_recordset(${JSON.stringify(filled)}::json) AS r ("recordId" uuid, content text)`)
  return rows.at(-1)?.record_id
}
