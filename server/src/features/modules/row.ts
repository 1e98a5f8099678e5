import { Failure, type FailureOptions } from '../../kernel/errors.ts'
import type { BatchItem } from '../../shared/records/batch.ts'
import { flatRow, type RecordRow } from '../../shared/records/record.ts'
import type { RecordScope } from '../../shared/records/scope.ts'
import type { CreateBody, UpdateBody } from '../../shared/records/work.ts'

/** Records of modules are flat on the wire (contract 5): their fields stand beside what every record has. */

/** Names of a body that are no fields. Descriptors have no field of such a name (descriptors.test.ts). */
export const envelopeNames = [
  'ownerUserId',
  'dataRoleId',
  'locationId',
  'participants',
  'externalKey',
  'expectedRevision',
  'operation',
  'recordId',
] as const
const envelope: ReadonlySet<string> = new Set(envelopeNames)

type FlatBody = Readonly<Record<string, unknown>>

/** A flat body as work on records takes it. */
export function nested(body: FlatBody): CreateBody & UpdateBody {
  const fields: Record<string, unknown> = {}
  const rest: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) (envelope.has(name) ? rest : fields)[name] = value
  return { ...rest, fields }
}

/** The same of an item of a batch; one that names no field has none, since archiving takes none. */
export function nestedItem(item: FlatBody): BatchItem {
  const { fields, ...rest } = nested(item)
  return { ...rest, ...(Object.keys(fields).length > 0 && { fields }) } as BatchItem
}

/** A record as its module shows it. Fields that the caller may not read are absent. */
export function rowOf(row: RecordRow, { access }: Pick<RecordScope, 'access'>) {
  return flatRow(row, access.readable)
}

/** Where a problem is in a flat body: `emails[0].address`, not `fields.emails[0].address`. */
export function flatPosition(position: string): string {
  return position.replace(/^(items\[\d+\]\.)?fields\./, '$1')
}

/** Does work on records, and names what is wrong as the flat body has it. */
export async function inFlatTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure) || !error.details) throw error
    const { code, message, headers, retryAfterSeconds, cause } = error
    const details = error.details.map((detail) => ({ ...detail, field: flatPosition(detail.field) }))
    const options: FailureOptions = {
      message,
      details,
      headers,
      cause,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    }
    throw new Failure(code, options)
  }
}
