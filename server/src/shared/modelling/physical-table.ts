import { dataTypeOf, dataTypes } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'

/**
 * The physical side of an object: one table, envelope columns first, then a typed column for each field (architecture.md,
 * decision 5). Names are made here and nowhere else; keys are checked against `^[a-z][A-Za-z0-9_]*$` before they get here,
 * so quoting them is enough.
 */
export function columnName(fieldKey: string): string {
  return `f_${fieldKey}`
}

/** The column that comparisons use instead of the value's own; see `Shadow`. */
export function shadowColumn(field: Field): string | undefined {
  return dataTypeOf(field).shadow === undefined ? undefined : `x_${field.column.slice(2)}`
}

/** What SQL compares and sorts by. */
export function comparedColumn(field: Field): string {
  return shadowColumn(field) ?? field.column
}

/** The value of the shadow column, from an expression for the value itself. */
export function shadowExpression(field: Field, value: string): string {
  return dataTypeOf(field).shadow === 'float' ? `(${value})::double precision` : foldedExpression(value)
}

/**
 * Lower case by the Unicode rules of ICU, whatever the locale of the database: the locale of somebody else's server must
 * not decide what equals what. Both small sigmas are one, because which of them a Σ becomes depends on what follows it:
 * "ΟΔΟΣ" would not be found at the start of "ΟΔΟΣΑ".
 */
export function foldedExpression(value: string): string {
  return `translate(lower(${value} COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C"`
}

/**
 * A new table for an object, with the columns of these fields. Nothing of it touches a table that others use. Its indexes
 * bear the id of the object, with a capital letter in their names, which no table has: named after the table, that of the
 * object `deal` by role was in the way of an object `deal-role`.
 */
export function createTable(
  schema: string,
  { objectId, tableName }: { readonly objectId: string; readonly tableName: string },
  fields: readonly Field[],
): string[] {
  const qualified = `"${schema}"."${tableName}"`
  const name = (what: string) => `"ix_${objectId.replaceAll('-', '')}_${what}"`
  const index = (what: string, definition: string) => `CREATE INDEX ${name(what)} ON ${qualified} ${definition}`
  // Each live record is in one of the last three, by whom it is seen; lists and counts of a caller go through those that
  // concern it, and find the location in them too (a million counted in 0.1 s instead of 1 s).
  const rest = 'created_at, record_id) INCLUDE (location_id) WHERE archived_at IS NULL'
  return [
    `CREATE TABLE ${qualified} (
      organization_id uuid NOT NULL,
      record_id uuid NOT NULL,
      owner_user_id uuid,
      data_role_id uuid,
      location_id uuid,
      external_key text COLLATE "C",
      created_at timestamptz(3) NOT NULL,
      created_by_kind text NOT NULL,
      created_by_id text NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      updated_by_kind text NOT NULL,
      updated_by_id text NOT NULL,
      archived_at timestamptz(3),
      revision bigint NOT NULL,
      ${fields
        .flatMap(columnDefinitions)
        .map((column) => `${column},`)
        .join(' ')}
      CONSTRAINT ${name('recordId')} PRIMARY KEY (organization_id, record_id),
      CONSTRAINT record_one_target CHECK (owner_user_id IS NULL OR data_role_id IS NULL)
    )`,
    `ALTER TABLE ${qualified} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
    `CREATE POLICY tenant ON ${qualified} USING (organization_id = (SELECT portico.current_organization()))`,
    `GRANT SELECT, INSERT, UPDATE ON ${qualified} TO portico_app`,
    ...checkReference(qualified, 'owner_user_id', 'user', 'record_ownerUserId'),
    ...checkReference(qualified, 'data_role_id', 'dataRole', 'record_dataRoleId'),
    ...checkReference(qualified, 'location_id', 'location', 'record_locationId'),
    index('createdAt', `(organization_id, ${rest}`),
    index('updatedAt', '(organization_id, updated_at, record_id) WHERE archived_at IS NULL'),
    index('ownerUserId', `(organization_id, owner_user_id, ${rest} AND owner_user_id IS NOT NULL`),
    index('dataRoleId', `(organization_id, data_role_id, ${rest} AND data_role_id IS NOT NULL`),
    index('ofEverybody', `(organization_id, ${rest} AND owner_user_id IS NULL AND data_role_id IS NULL`),
    `CREATE UNIQUE INDEX ${name('externalKey')} ON ${qualified} (organization_id, external_key) WHERE archived_at IS NULL`,
  ]
}

/**
 * Refuses, as a foreign key called `name` would, what is written with a user, a role or a location that is not there; see
 * `0019_references.sql`. A foreign key would lock the table that it leads to whenever an object comes or goes, and that
 * table is every tenant's.
 */
function checkReference(qualified: string, column: string, target: string, name: string): string[] {
  const check = `NOT portico.reference_holds('${target}', NEW.organization_id, NEW."${column}")`
  const refuse = `EXECUTE FUNCTION portico.refuse_reference('${name}')`
  return [
    `CREATE TRIGGER "${name}" AFTER INSERT ON ${qualified} FOR EACH ROW
      WHEN (NEW."${column}" IS NOT NULL AND ${check}) ${refuse}`,
    `CREATE TRIGGER "${name}_changed" AFTER UPDATE OF "${column}" ON ${qualified} FOR EACH ROW
      WHEN (NEW."${column}" IS DISTINCT FROM OLD."${column}" AND NEW."${column}" IS NOT NULL AND ${check}) ${refuse}`,
  ]
}

/** Adds the columns of fields. Instant on a table of any size: no default, nothing generated, nothing rewritten. */
export function addColumns(qualified: string, fields: readonly Field[]): string {
  const columns = fields.flatMap(columnDefinitions).map((column) => `ADD COLUMN ${column}`)
  return `ALTER TABLE ${qualified} ${columns.join(', ')}`
}

/** How many columns a field takes. */
export function columnCount({ dataType }: Pick<Field, 'dataType'>): number {
  return 'shadow' in dataTypes[dataType] ? 2 : 1
}

/** Of every table, before those of its fields. */
export const envelopeColumns = 14

function columnDefinitions(field: Field): string[] {
  const shadow = shadowColumn(field)
  const shadowType = dataTypeOf(field).shadow === 'float' ? 'double precision' : 'text COLLATE "C"'
  const columns = [`"${field.column}" ${dataTypeOf(field).column}`]
  if (shadow) columns.push(`"${shadow}" ${shadowType}`)
  return columns
}

/** Takes the columns of a field away, with their index, their values and what checks them. */
export function dropColumns(qualified: string, field: Field): string[] {
  const columns = [field.column, shadowColumn(field)].filter((column) => column !== undefined)
  const name = referenceName(field)
  const checks = field.dataType === 'user' ? [name, `${name}_changed`] : []
  return [
    ...checks.map((check) => `DROP TRIGGER "${check}" ON ${qualified}`),
    `ALTER TABLE ${qualified} ${columns.map((column) => `DROP COLUMN "${column}"`).join(', ')}`,
  ]
}

export interface IndexPlan {
  readonly name: string
  /** After `CREATE [UNIQUE] INDEX [CONCURRENTLY]`. */
  readonly definition: string
  readonly unique: boolean
}

/** Named by the field's id: keys can be 50 characters long, and PostgreSQL cuts names at 63 without a word. */
export function indexName(field: Field): string {
  return `ix_${field.fieldId.replaceAll('-', '')}`
}

export function referenceName(field: Field): string {
  return `fk_${field.fieldId.replaceAll('-', '')}`
}

/** The index that a field asks for: unique among live records, or made to filter and sort by. */
export function fieldIndex(qualified: string, field: Field): IndexPlan | undefined {
  const name = indexName(field)
  if (field.unique) {
    // Exact decimals are unique as such, not as the floats beside them.
    const column = dataTypeOf(field).shadow === 'float' ? field.column : comparedColumn(field)
    const definition = `"${name}" ON ${qualified} (organization_id, "${column}") WHERE archived_at IS NULL`
    return { name, unique: true, definition }
  }
  if (!field.indexed && field.dataType !== 'reference') return undefined
  const definition = `"${name}" ON ${qualified} (organization_id, "${comparedColumn(field)}", record_id)`
  return { name, unique: false, definition }
}

/** A field of users holds only users of the same organisation. */
export function checkUser(qualified: string, field: Field): string[] {
  return checkReference(qualified, field.column, 'user', referenceName(field))
}

/** A reference holds only where a record of the same organisation stands at its other end. */
export function referenceConstraint(qualified: string, field: Field, target: string): string {
  return `ALTER TABLE ${qualified} ADD CONSTRAINT "${referenceName(field)}"
    FOREIGN KEY (organization_id, "${field.column}") REFERENCES ${target}`
}
