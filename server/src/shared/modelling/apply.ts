import sql from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { assertValid } from '../../kernel/validation.ts'
import { recordAudit } from '../audit.ts'
import type { Behaviours } from '../catalogue/behaviour.ts'
import type { Database } from '../database/database.ts'
import type { Change } from './changes.ts'
import { type FieldDocument, ModelDocument, type ObjectDocument } from './document.ts'
import { buildUnfinished } from './index-builder.ts'
import { TablesInUse } from './lock-tables.ts'
import { normalised, own } from './normalise.ts'
import { assess, publish } from './publish.ts'
import { readPublished } from './published.ts'
import { inTurn } from './turn.ts'

/** The document cannot be applied; nothing was changed. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}

export interface ApplyResult {
  readonly objectsAdded: number
  readonly fieldsAdded: number
}

/**
 * Brings an application to a model document: adds the objects, fields, roles, relationships and location templates that are
 * missing, sets the permissions of the roles that it names, and keeps a release of it, all in one transaction. Additive:
 * what exists and differs in type is refused, what the document does not name stays. Running it twice changes nothing the
 * second time. Waits until the indexes are built, for which it needs the behaviours of native objects.
 */
export async function applyModel(
  database: Database,
  appId: string,
  document: unknown,
  behaviours?: Behaviours,
): Promise<ApplyResult> {
  assertValid(ModelDocument, document)
  const done = await inTurn(database, appId, async () => {
    const added = await database.as('portico_owner', (tx) => applyIn(tx, appId, document as ModelDocument))
    await buildUnfinished(database, appId, behaviours)
    return added
  })
  if (!done) throw new ModelError('Another change of this model is still being applied.')
  return done.value
}

async function applyIn(tx: Tx, appId: string, document: ModelDocument): Promise<ApplyResult> {
  const published = await readPublished(tx, appId)
  if (!published) throw new ModelError(`There is no application ${appId}.`)
  const assessment = await assess(tx, published, merged(published.document, document))
  const told = [...assessment.problems, ...assessment.refusals]
  if (told.length > 0) throw new ModelError(told.map(({ message }) => message).join('\n'))
  if (assessment.changes.length > 0) {
    const releaseNumber = await publish(tx, published, assessment, { publishedBy: null }).catch((error: unknown) => {
      if (error instanceof TablesInUse) throw new ModelError('The tables are in use. Apply again.', { cause: error })
      throw error
    })
    await recordRelease(tx, appId, releaseNumber, assessment.changes)
  } else {
    // What failed to be built is tried again, and who asks is told by the next request.
    await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
  }
  return counted(assessment.changes)
}

/** Whoever holds the database applied it: the command in the terminal, or the demo. */
async function recordRelease(tx: Tx, appId: string, releaseNumber: number, changes: readonly Change[]): Promise<void> {
  const [application] = await tx.rows<{ accountId: string }>(
    sql`SELECT account_id AS "accountId" FROM portico.application WHERE app_id = ${appId}`,
  )
  const caller = { accountId: application!.accountId, actor: { kind: 'system', id: 'terminal' } } as const
  const now = Date.now()
  await recordAudit(
    { tx, caller, now, correlationId: uuidv7(now) },
    {
      action: 'model_release.published',
      target: { type: 'model_release', id: String(releaseNumber) },
      saasAppId: appId,
      after: { releaseNumber, changes: changes.map(({ path, verb }) => `${path} ${verb}`) },
    },
  )
}

function counted(changes: readonly Change[]): ApplyResult {
  const added = changes.filter(({ verb }) => verb === 'added')
  const objects = added.filter(({ part }) => part === 'object')
  const fields = objects.map(({ after }) => (after as unknown as ObjectDocument).fields.length)
  return {
    objectsAdded: objects.length,
    fieldsAdded: fields.reduce((sum, count) => sum + count, added.filter(({ part }) => part === 'field').length),
  }
}

/** What there is, and what the document has beyond it. */
function merged(current: ModelDocument, addition: ModelDocument): ModelDocument {
  const [from, more] = [normalised(current), normalised(addition)]
  const known = new Set(from.objects.map((object) => object.objectKey))
  const roles = Object.entries(more.roles).map(([key, role]) => [
    key,
    { ...own(from.roles, key), ...role, objects: { ...own(from.roles, key)?.objects, ...role.objects } },
  ])
  return {
    objects: [
      ...from.objects.map((object) =>
        more.objects.filter(({ objectKey }) => objectKey === object.objectKey).reduce(mergedObject, object),
      ),
      ...more.objects.filter(({ objectKey }) => !known.has(objectKey)),
    ],
    relationships: { ...more.relationships, ...from.relationships },
    roles: { ...from.roles, ...Object.fromEntries(roles) },
    locations: { ...more.locations, ...from.locations },
  }
}

function mergedObject(object: ObjectDocument, { fields }: ObjectDocument): ObjectDocument {
  const known = new Map(object.fields.map((field) => [field.fieldKey, field]))
  // Types are compared, and a difference is refused as any change of a type is.
  const typed = (field: FieldDocument) => {
    const again = fields.find(({ fieldKey }) => fieldKey === field.fieldKey)
    return again && again.dataType !== field.dataType ? { ...field, dataType: again.dataType } : field
  }
  return { ...object, fields: [...object.fields.map(typed), ...fields.filter(({ fieldKey }) => !known.has(fieldKey))] }
}
