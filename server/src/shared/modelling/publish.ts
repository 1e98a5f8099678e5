import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { type Change, changesBetween, changeView, summaryOfViews } from './changes.ts'
import type { ModelDocument } from './document.ts'
import { lockTables } from './lock-tables.ts'
import { normalised } from './normalise.ts'
import { partSteps, provisionOrganizations } from './part-steps.ts'
import { addColumns } from './physical-table.ts'
import { type Issue, problemsOf } from './problems.ts'
import { nativeKeys, type PublishedModel } from './published.ts'
import { type Stake, stakeOf } from './stakes.ts'
import { addFieldsOfNewObjects, objectSteps, type Publishing } from './steps.ts'
import { refusalsOfTables } from './table-limits.ts'

/**
 * The one way from one model to another: compare, find what stands against it, carry it out in one transaction, keep a
 * release. Drafts are published by it, releases rolled back to, and documents applied (`apply.ts`).
 */
export interface Assessment {
  readonly wanted: ModelDocument
  readonly changes: readonly (Change & { readonly rowsAtStake: number | null })[]
  /** What is wrong with the document itself. */
  readonly problems: readonly Issue[]
  /** What the data of organisations stands against. */
  readonly refusals: readonly Issue[]
}

/** Compares and counts, and changes nothing. Runs in transactions of builders and of the owner. */
export async function assess(
  tx: Tx,
  published: PublishedModel,
  document: ModelDocument,
  { confirmDataLoss = false } = {},
): Promise<Assessment> {
  const wanted = normalised(document)
  const problems = problemsOf(wanted, nativeKeys(published))
  const changes = changesBetween(published.document, wanted)
  const refusals = problems.length > 0 ? [] : await refusalsOfTables(tx, published, changes)
  const stakes: Stake[] = []
  for (const change of changes) stakes.push(await stakeOf(tx, published, change, confirmDataLoss))
  return {
    wanted,
    changes: changes.map((change, index) => ({ ...change, rowsAtStake: stakes[index]!.rows })),
    problems,
    refusals: [...refusals, ...stakes.flatMap((stake) => stake.refusal ?? [])],
  }
}

/** Do the changes take data away for good? */
export function isDestructive({ changes }: Pick<Assessment, 'changes'>): boolean {
  return changes.some(({ verb, part, rowsAtStake }) => {
    return verb === 'removed' && (part === 'field' || part === 'object') && (rowsAtStake ?? 0) > 0
  })
}

export function summaryOf({ changes }: Pick<Assessment, 'changes'>): string {
  return summaryOfViews(changes.map(changeView))
}

export interface ReleaseNote {
  readonly note?: string
  /** The builder; null where a command publishes. */
  readonly publishedBy: string | null
  readonly rolledBackTo?: number
}

/**
 * Carries an assessment without problems and refusals out, as the owner, and returns the number of the release. Throws
 * `TablesInUse`, and `RowsAppeared` where something was written that would be lost.
 *
 * The order is the promise to those who work meanwhile: everything that only writes definitions comes first; the tables
 * are locked last, all at once, and the transaction commits some milliseconds later.
 */
export async function publish(
  tx: Tx,
  published: PublishedModel,
  { wanted, changes }: Assessment,
  release: ReleaseNote,
): Promise<number> {
  const publishing: Publishing = {
    tx,
    published,
    wanted,
    made: new Map(),
    making: [],
    linking: [],
    columns: new Map(),
    tables: new Set(),
    targets: new Set(),
    ddl: [],
    touched: new Set(),
    searched: new Set(),
  }
  // Organisations that are being provisioned get the roles of the model before or of this one, and miss none.
  await tx.rows(sql`SELECT FROM portico.application WHERE app_id = ${published.appId} FOR NO KEY UPDATE`)
  const run = async (change: Change) => {
    const name = `${change.part}.${change.verb}`
    await (objectSteps[name] ?? partSteps[name])!(publishing, change)
  }
  const isOfObjects = ({ part }: Change) => part === 'object' || part === 'field'
  const early = changes.filter((change) => !isOfObjects(change) && change.verb === 'removed')
  const late = changes.filter((change) => !isOfObjects(change) && change.verb !== 'removed')
  for (const change of early) await run(change)
  for (const change of changes.filter((one) => isOfObjects(one) && one.part === 'object')) {
    if (change.verb !== 'removed') await run(change)
  }
  await addFieldsOfNewObjects(publishing)
  for (const change of changes.filter(({ part }) => part === 'field')) await run(change)
  for (const change of changes.filter(({ part, verb }) => part === 'object' && verb === 'removed')) await run(change)
  for (const change of late) await run(change)
  await noteTouched(publishing)
  await provisionOrganizations(publishing)
  const number = await insertRelease(publishing, changes, release)
  await tx.rows(sql`SELECT portico.bump_epoch(${published.appId})`)
  await changeTables(publishing)
  return number
}

async function noteTouched({ tx, published, wanted, touched, searched }: Publishing): Promise<void> {
  const { appId } = published
  await tx.rows(sql`UPDATE portico.object_definition SET schema_revision = schema_revision + 1
    WHERE app_id = ${appId} AND object_key = ANY (${[...touched]})`)
  await tx.rows(sql`UPDATE portico.object_definition SET search_state = 'building'
    WHERE app_id = ${appId} AND object_key = ANY (${[...searched]})`)
  const positions = wanted.objects.flatMap(({ objectKey, fields }) =>
    fields.map(({ fieldKey }, position) => ({ objectKey, fieldKey, position })),
  )
  await tx.rows(sql`UPDATE portico.field_definition f SET position = p.position
    FROM json_to_recordset(${JSON.stringify(positions)}::json) AS p ("objectKey" text, "fieldKey" text, position integer)
    JOIN portico.object_definition o ON o.app_id = ${appId} AND o.object_key = p."objectKey"
    WHERE f.app_id = o.app_id AND f.object_id = o.object_id AND f.field_key = p."fieldKey" AND f.position <> p.position`)
}

async function insertRelease(
  { tx, published, wanted }: Publishing,
  changes: Assessment['changes'],
  { note = '', publishedBy, rolledBackTo }: ReleaseNote,
): Promise<number> {
  const [row] = await tx.rows<{ number: number }>(sql`
    INSERT INTO portico.model_release (app_id, release_number, document, changes, note, rolled_back_to, published_by)
    VALUES (${published.appId}, ${published.releaseNumber + 1}, ${JSON.stringify(wanted)}::jsonb,
      ${JSON.stringify(changes.map(changeView))}::jsonb, ${note}, ${rolledBackTo ?? null}, ${publishedBy})
    RETURNING release_number AS number`)
  return row!.number
}

/** New tables first, which nobody waits for; then, under the locks of all of them at once, tables that others use. */
async function changeTables({ tx, published, ...plan }: Publishing): Promise<void> {
  const { making, linking, columns, tables, targets, ddl } = plan
  const { schemaName } = published
  if (making.length > 0) {
    await tx.rows(sql`${raw(`CREATE SCHEMA IF NOT EXISTS "${schemaName}"`)}`)
    await tx.rows(sql`${raw(`GRANT USAGE ON SCHEMA "${schemaName}" TO portico_app`)}`)
  }
  for (const statement of [...making, ...linking]) await tx.rows(sql`${raw(statement)}`)
  await lockTables(tx, [...tables].sort(), [...targets].filter((target) => !tables.has(target)).sort())
  for (const [table, fields] of columns) await tx.rows(sql`${raw(addColumns(table, fields))}`)
  for (const step of ddl) {
    if (typeof step === 'string') await tx.rows(sql`${raw(step)}`)
    else await step()
  }
}
