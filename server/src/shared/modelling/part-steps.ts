import sql from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Change } from './changes.ts'
import type { PublishedObject } from './published.ts'
import { deletionOfLinks, sumOverOrganizations } from './stakes.ts'
import { type Publishing, RowsAppeared } from './steps.ts'

/** How changes of roles, relationships and location templates are carried out, in the application and its organisations. */
type Step = (publishing: Publishing, change: Change) => Promise<void>

export const partSteps: Readonly<Record<string, Step>> = {
  'role.added': setRole,
  'role.changed': setRole,
  'role.removed': removeRole,
  'relationship.added': addRelationship,
  'relationship.changed': changeRelationship,
  'relationship.removed': removeRelationship,
  'location.added': setLocation,
  'location.changed': setLocation,
  'location.removed': removeLocation,
}

async function setRole({ tx, published, wanted }: Publishing, { key }: Change): Promise<void> {
  const { appId } = published
  const role = wanted.roles![key]!
  await tx.rows(sql`
    INSERT INTO portico.data_role_template (app_id, template_key, label, actions)
    VALUES (${appId}, ${key}, ${role.label}, ${role.actions ?? []})
    ON CONFLICT (app_id, template_key) DO UPDATE SET label = excluded.label, actions = excluded.actions`)
  await tx.rows(sql`DELETE FROM portico.field_permission WHERE app_id = ${appId} AND template_key = ${key}`)
  await tx.rows(sql`DELETE FROM portico.object_permission WHERE app_id = ${appId} AND template_key = ${key}`)
  const rights = Object.entries(role.objects).map(([objectKey, right]) => ({ objectKey, ...right }))
  const ofFields = rights.flatMap(({ objectKey, fields = {} }) =>
    Object.entries(fields).map(([fieldKey, right]) => ({ objectKey, fieldKey, ...right })),
  )
  await tx.rows(sql`
    INSERT INTO portico.object_permission (app_id, template_key, object_id, can_read, can_create, can_update, can_archive)
    SELECT ${appId}, ${key}, o.object_id, r."read", coalesce(r."create", false), coalesce(r."update", false),
      coalesce(r."archive", false)
    FROM json_to_recordset(${JSON.stringify(rights)}::json)
      AS r ("objectKey" text, "read" boolean, "create" boolean, "update" boolean, "archive" boolean)
    JOIN portico.object_definition o ON o.app_id = ${appId} AND o.object_key = r."objectKey"`)
  await tx.rows(sql`
    INSERT INTO portico.field_permission (app_id, template_key, object_id, field_id, can_read, can_write)
    SELECT ${appId}, ${key}, o.object_id, f.field_id, r."read", r."write"
    FROM json_to_recordset(${JSON.stringify(ofFields)}::json)
      AS r ("objectKey" text, "fieldKey" text, "read" boolean, "write" boolean)
    JOIN portico.object_definition o ON o.app_id = ${appId} AND o.object_key = r."objectKey"
    JOIN portico.field_definition f ON f.app_id = o.app_id AND f.object_id = o.object_id AND f.field_key = r."fieldKey"`)
}

/**
 * That nobody holds it was found out before (stakes.ts). A user who got it since then breaks a foreign key, and the
 * publication. Records have none to it: they are counted once more, when whoever gave it to one has been waited for and
 * nobody can any more.
 */
async function removeRole({ tx, published }: Publishing, { key }: Change): Promise<void> {
  const { appId } = published
  const roles = await rolesOf(tx, appId, key)
  await sumOverOrganizations(
    tx,
    appId,
    `WITH gone AS (DELETE FROM portico.data_role
       WHERE organization_id = $1 AND template_key = $2::jsonb ->> 'key' RETURNING 1),
     bumped AS (SELECT portico.bump_epoch($1) FROM gone)
     SELECT count(*) FROM bumped`,
    { key },
  )
  const held = [...published.objects.values()].map(rowsOfRoles)
  if (held.length > 0) {
    const count = await sumOverOrganizations(tx, appId, `SELECT ${held.join(' + ')}`, { roles })
    if (count > 0) throw new RowsAppeared()
  }
  await tx.rows(sql`DELETE FROM portico.field_permission WHERE app_id = ${appId} AND template_key = ${key}`)
  await tx.rows(sql`DELETE FROM portico.object_permission WHERE app_id = ${appId} AND template_key = ${key}`)
  await tx.rows(sql`DELETE FROM portico.data_role_template WHERE app_id = ${appId} AND template_key = ${key}`)
}

/** The DataRoles of a template, in every organisation. The owner may look them up. */
async function rolesOf(tx: Tx, appId: string, key: string): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(
    sql`SELECT data_role_id AS id FROM portico.data_role WHERE app_id = ${appId} AND template_key = ${key}`,
  )
  return rows.map(({ id }) => id)
}

function rowsOfRoles({ table }: PublishedObject): string {
  return `(SELECT count(*) FROM ${table} WHERE organization_id = $1
    AND data_role_id = ANY (ARRAY(SELECT jsonb_array_elements_text($2::jsonb -> 'roles')::uuid)))`
}

async function addRelationship({ tx, published, wanted }: Publishing, { key }: Change): Promise<void> {
  const { appId } = published
  const { label, inverseLabel, cardinality, from, to, deleteRule } = wanted.relationships![key]!
  await tx.rows(sql`
    INSERT INTO portico.relationship_definition (app_id, relationship_id, relationship_key, label, inverse_label,
      cardinality, from_object_id, to_object_id, delete_rule)
    SELECT ${appId}, ${uuidv7(Date.now())}, ${key}, ${label}, ${inverseLabel}, ${cardinality}, f.object_id, t.object_id,
      ${deleteRule}
    FROM portico.object_definition f, portico.object_definition t
    WHERE f.app_id = ${appId} AND f.object_key = ${from} AND t.app_id = ${appId} AND t.object_key = ${to}`)
}

async function changeRelationship({ tx, published, wanted }: Publishing, { key }: Change): Promise<void> {
  const { label, inverseLabel, deleteRule } = wanted.relationships![key]!
  await tx.rows(sql`UPDATE portico.relationship_definition
    SET label = ${label}, inverse_label = ${inverseLabel}, delete_rule = ${deleteRule}
    WHERE app_id = ${published.appId} AND relationship_key = ${key}`)
}

/** Records that are related meanwhile break a foreign key, and the publication. */
async function removeRelationship({ tx, published }: Publishing, { key }: Change): Promise<void> {
  const { appId } = published
  await sumOverOrganizations(tx, appId, deletionOfLinks, { appId, key })
  await tx.rows(sql`DELETE FROM portico.relationship_definition
    WHERE app_id = ${appId} AND relationship_key = ${key} AND kind = 'custom'`)
}

async function setLocation({ tx, published, wanted }: Publishing, { key }: Change): Promise<void> {
  await tx.rows(sql`
    INSERT INTO portico.location_template (app_id, template_key, label)
    VALUES (${published.appId}, ${key}, ${wanted.locations![key]!.label})
    ON CONFLICT (app_id, template_key) DO UPDATE SET label = excluded.label`)
}

/** Organisations keep the locations that they have: records and people are there. */
async function removeLocation({ tx, published }: Publishing, { key }: Change): Promise<void> {
  await tx.rows(sql`DELETE FROM portico.location_template
    WHERE app_id = ${published.appId} AND template_key = ${key}`)
}

/**
 * Gives every organisation of the application the DataRoles and locations that it misses. Where one was added, its epoch
 * moves: its credentials are read anew.
 */
export async function provisionOrganizations({ tx, published }: Publishing): Promise<void> {
  await sumOverOrganizations(
    tx,
    published.appId,
    `WITH added AS (
       INSERT INTO portico.data_role (organization_id, data_role_id, app_id, template_key)
       SELECT $1, gen_random_uuid(), t.app_id, t.template_key FROM portico.data_role_template t
       WHERE t.app_id = ($2::jsonb ->> 'appId')::uuid
       ON CONFLICT (organization_id, template_key) DO NOTHING RETURNING 1),
     located AS (
       INSERT INTO portico.location (organization_id, location_id, location_key, name)
       SELECT $1, gen_random_uuid(), t.template_key, t.label FROM portico.location_template t
       WHERE t.app_id = ($2::jsonb ->> 'appId')::uuid
       ON CONFLICT (organization_id, location_key) DO NOTHING RETURNING 1),
     bumped AS (
       SELECT portico.bump_epoch($1) WHERE EXISTS (SELECT FROM added) OR EXISTS (SELECT FROM located))
     SELECT count(*) FROM bumped`,
    { appId: published.appId },
  )
}
