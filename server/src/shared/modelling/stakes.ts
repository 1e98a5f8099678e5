import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { dataTypes, indexedTextMax } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { type Change, nameOf } from './changes.ts'
import type { FieldDocument } from './document.ts'
import { comparedColumn } from './physical-table.ts'
import type { Issue } from './problems.ts'
import type { PublishedModel, PublishedObject } from './published.ts'

/**
 * What stands against a change: the rows that would be lost, or that would not meet what is asked of them from then on,
 * counted in every organisation of the application. Whoever counts is bound to one organisation after the other
 * (`portico.sum_over_organizations`), under the row-level security that holds for everybody.
 */
export interface Stake {
  /** Rows that the change would lose or that stand against it; null where it touches none. */
  readonly rows: number | null
  readonly refusal?: Issue
}

const none: Stake = { rows: null }

export async function stakeOf(
  tx: Tx,
  published: PublishedModel,
  change: Change,
  confirmDataLoss: boolean,
): Promise<Stake> {
  const object = published.objects.get(change.key)
  const field = change.fieldKey === undefined ? undefined : object?.fields.get(change.fieldKey)
  const count = (statement: string, given: object = {}) => sumOverOrganizations(tx, published.appId, statement, given)
  switch (`${change.part}.${change.verb}`) {
    case 'object.removed':
      return removal(change, await count(allRows(object!)), confirmDataLoss)
    case 'field.removed':
      return removal(change, await count(rowsWithValue(object!, field!)), confirmDataLoss)
    case 'field.added':
      if (!object || change.after?.['required'] !== true || change.after['archived'] === true) return none
      return against(change, 'rows_without_value', await count(liveRows(object)), 'have no value')
    case 'field.restored':
      return field!.required ? without(change, await count(rowsWithoutValue(object!, field!))) : none
    case 'field.changed':
      return stakeOfField(change, object!, field!, count)
    case 'role.removed':
      return against(
        change,
        'role_in_use',
        await count(holdersOf(published), { key: change.key }),
        'of users, credentials, invitations and records hold the role',
      )
    case 'relationship.removed': {
      const rows = await count(linksOf, { appId: published.appId, key: change.key })
      if (rows === 0 || confirmDataLoss) return { rows }
      const message = `${change.path}: ${rows} relationships of records would be lost. Publish with \`confirmDataLoss\` to lose them.`
      return { rows, refusal: { path: change.path, code: 'data_loss_unconfirmed', message } }
    }
    case 'relationship.changed': {
      const shape = ['from', 'to', 'cardinality'].some((property) => Object.hasOwn(change.after!, property))
      const message = `${change.path} cannot change its ends or its cardinality. Remove it and add another.`
      return shape ? { rows: null, refusal: { path: change.path, code: 'relationship_shape_change', message } } : none
    }
    default:
      return none
  }
}

type Count = (statement: string, given?: object) => Promise<number>

async function stakeOfField(change: Change, object: PublishedObject, field: Field, count: Count): Promise<Stake> {
  const { path } = change
  const after = (change.after ?? {}) as Partial<Record<keyof FieldDocument, unknown>>
  const name = nameOf(path)
  if (after.dataType !== undefined) {
    const message = `${name} is of type ${field.dataType} and cannot become ${after.dataType}.`
    return { rows: await count(rowsWithValue(object, field)), refusal: { path, code: 'data_type_change', message } }
  }
  if (Object.hasOwn(after, 'references')) {
    const message = `${name} cannot lead to another object. Add another field.`
    return { rows: await count(rowsWithValue(object, field)), refusal: { path, code: 'reference_change', message } }
  }
  const stakes: Stake[] = []
  if (after.required === true) stakes.push(without(change, await count(rowsWithoutValue(object, field))))
  if (after.unique === true) {
    const rows = await count(rowsSharingValues(object, field))
    stakes.push(against(change, 'duplicate_values', rows, 'share a value with another one'))
  }
  if ((after.unique === true || after.indexed === true) && dataTypes[field.dataType].column.startsWith('text')) {
    const rows = await count(rowsWithLongText(object, field))
    const message = `have a value of more than ${indexedTextMax} characters`
    stakes.push(against(change, 'values_too_long', rows, message))
  }
  const gone = optionsGone(change)
  if (gone.length > 0) {
    const rows = await count(rowsWithOption(object, field), { options: gone })
    stakes.push(
      against(change, 'option_in_use', rows, `hold ${gone.length === 1 ? gone[0] : `one of ${gone.join(', ')}`}`),
    )
  }
  return stakes.find((stake) => stake.refusal) ?? stakes[0] ?? none
}

function optionsGone({ before, after }: Change): string[] {
  const values = (state: Change['before']) =>
    ((state?.['options'] ?? []) as { value: string }[]).map((option) => option.value)
  return values(before).filter((value) => !values(after).includes(value))
}

function against({ path }: Change, code: string, rows: number, what: string): Stake {
  if (rows === 0) return { rows }
  return {
    rows,
    refusal: { path, code, message: `${path}: ${rows} ${code === 'role_in_use' ? '' : 'records '}${what}.` },
  }
}

function without(change: Change, rows: number): Stake {
  return against(change, 'rows_without_value', rows, 'have no value')
}

/** Data goes in two steps: what is archived first has been out of sight, and only then is its loss confirmed. */
function removal(change: Change, rows: number, confirmDataLoss: boolean): Stake {
  const wasArchived = change.before?.['archived'] === true
  if (rows === 0 || (wasArchived && confirmDataLoss)) return { rows }
  const code = wasArchived ? 'data_loss_unconfirmed' : 'data_would_be_lost'
  const way = wasArchived ? 'Publish with `confirmDataLoss` to lose them.' : 'Archive it first.'
  const what = change.part === 'object' ? `${rows} records` : `the values of ${rows} records`
  return { rows, refusal: { path: change.path, code, message: `${change.path}: ${what} would be lost. ${way}` } }
}

/** `statement` answers one number for the organisation $1; `given` is its $2. */
export async function sumOverOrganizations(
  tx: Tx,
  appId: string,
  statement: string,
  given: object = {},
): Promise<number> {
  const [row] = await tx.rows<{ total: number }>(
    sql`SELECT portico.sum_over_organizations(${appId}, ${statement}, ${JSON.stringify(given)}::jsonb) AS total`,
  )
  return row!.total
}

/** `$2` is named everywhere, because what is executed with two values must take two. */
const given = '$2::jsonb IS NOT NULL'

function allRows({ table }: PublishedObject): string {
  return `SELECT count(*) FROM ${table} WHERE organization_id = $1 AND ${given}`
}

function liveRows(object: PublishedObject): string {
  return `${allRows(object)} AND archived_at IS NULL`
}

/** Links of records by the relationship `$2 ->> 'key'` of the application `$2 ->> 'appId'`. */
const ofRelationship = `organization_id = $1 AND definition_id = (SELECT relationship_id
  FROM portico.relationship_definition
  WHERE app_id = ($2::jsonb ->> 'appId')::uuid AND relationship_key = $2::jsonb ->> 'key' AND kind = 'custom')`
const linksOf = `SELECT count(*) FROM portico.record_relationship WHERE ${ofRelationship}`
export const deletionOfLinks = `WITH gone AS (DELETE FROM portico.record_relationship WHERE ${ofRelationship} RETURNING 1)
  SELECT count(*) FROM gone`

export function rowsWithValue(object: PublishedObject, { column }: Field): string {
  return `${allRows(object)} AND "${column}" IS NOT NULL`
}

function rowsWithoutValue(object: PublishedObject, { column }: Field): string {
  return `${liveRows(object)} AND "${column}" IS NULL`
}

function rowsWithLongText(object: PublishedObject, { column }: Field): string {
  return `${allRows(object)} AND length("${column}") > ${indexedTextMax}`
}

function rowsWithOption(object: PublishedObject, { column, dataType }: Field): string {
  const options = `ARRAY(SELECT jsonb_array_elements_text($2::jsonb -> 'options'))`
  return `${allRows(object)} AND "${column}" ${dataType === 'multiSelect' ? '&&' : '= ANY'} (${options})`
}

function rowsSharingValues(object: PublishedObject, field: Field): string {
  const column = dataTypes[field.dataType].column === 'numeric' ? field.column : comparedColumn(field)
  return `SELECT coalesce(sum(n), 0) FROM (SELECT count(*) AS n FROM ${object.table}
    WHERE organization_id = $1 AND ${given} AND archived_at IS NULL AND "${column}" IS NOT NULL
    GROUP BY "${column}" HAVING count(*) > 1) AS shared`
}

/** Whoever and whatever has a DataRole of the template `$2 ->> 'key'`. */
function holdersOf({ objects }: PublishedModel): string {
  const role = `(SELECT data_role_id FROM portico.data_role
    WHERE organization_id = $1 AND template_key = $2::jsonb ->> 'key')`
  const counts = [
    `(SELECT count(*) FROM portico.membership_data_role WHERE organization_id = $1 AND data_role_id = ${role})`,
    `(SELECT count(*) FROM portico.credential WHERE organization_id = $1 AND revoked_at IS NULL
      AND ${role} = ANY (envelope_data_role_ids))`,
    `(SELECT count(*) FROM portico.invitation WHERE organization_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL
      AND expires_at > now() AND ${role} = ANY (data_role_ids))`,
    ...[...objects.values()].map(
      ({ table }) => `(SELECT count(*) FROM ${table} WHERE organization_id = $1 AND data_role_id = ${role})`,
    ),
  ]
  return `SELECT ${counts.join(' + ')}`
}
