import { type Failure, fail } from '../../kernel/errors.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Field } from '../catalogue/field.ts'
import { brokenConstraint, isRowTooLarge } from '../database/failures.ts'
import { indexName, referenceName } from '../modelling/physical-table.ts'

/**
 * Runs a write and names the field of a constraint that it broke. The database decides what is unique and what exists, at
 * the moment of the write; asking first would only be a guess. A field that the caller may not read is not named: restoring
 * a record can break the rules of fields that it never saw.
 */
export async function translated<T>(access: ObjectAccess, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw violation(access, error) ?? error
  }
}

function violation(access: ObjectAccess, error: unknown): Failure | undefined {
  if (isRowTooLarge(error)) return fail('record_too_large', { field: 'fields', cause: error })
  const duplicate = brokenConstraint(error, 'unique')
  if (duplicate !== undefined) {
    return fail('duplicate_value', { ...place(access, duplicate, indexName), cause: error })
  }
  const dangling = brokenConstraint(error, 'reference')
  if (dangling !== undefined) {
    return fail('reference_not_found', { ...place(access, dangling, referenceName), cause: error })
  }
  if (brokenConstraint(error, 'check')?.endsWith('_one_target')) return fail('ownership_conflict', { cause: error })
  return undefined
}

function place(access: ObjectAccess, constraint: string, nameFor: (field: Field) => string): { field?: string } {
  const field = access.object.fields.find((candidate) => nameFor(candidate) === constraint)
  if (!field) return { field: named(constraint) }
  return access.readableByKey.has(field.fieldKey) ? { field: `fields.${field.fieldKey}` } : {}
}

/** What every record has is checked under the name of the property: `record_ownerUserId`. */
function named(constraint: string): string {
  if (constraint.startsWith('record_participant')) return 'participants'
  return constraint.slice(constraint.lastIndexOf('_') + 1)
}
