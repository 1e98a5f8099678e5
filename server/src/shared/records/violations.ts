import { type Failure, fail } from '../../kernel/errors.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { brokenConstraint } from '../database/failures.ts'
import { indexName, referenceName } from '../modelling/physical-table.ts'

/**
 * Runs a write and names the field of a constraint that it broke. The database decides what is unique and what exists, at
 * the moment of the write; asking first would only be a guess.
 */
export async function translated<T>(object: ObjectDefinition, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw violation(object, error) ?? error
  }
}

function violation(object: ObjectDefinition, error: unknown): Failure | undefined {
  const duplicate = brokenConstraint(error, 'unique')
  if (duplicate !== undefined) {
    const field = object.fields.find((candidate) => indexName(candidate) === duplicate)
    return fail('duplicate_value', { field: field ? `fields.${field.fieldKey}` : named(duplicate), cause: error })
  }
  const dangling = brokenConstraint(error, 'reference')
  if (dangling !== undefined) {
    const field = object.fields.find((candidate) => referenceName(candidate) === dangling)
    return fail('reference_not_found', { field: field ? `fields.${field.fieldKey}` : named(dangling), cause: error })
  }
  if (brokenConstraint(error, 'check')?.endsWith('_one_target')) return fail('ownership_conflict', { cause: error })
  return undefined
}

/** Constraints on what every record has are named after the property: `deal_ownerUserId`. */
function named(constraint: string): string {
  if (constraint.startsWith('record_participant')) return 'participants'
  return constraint.slice(constraint.lastIndexOf('_') + 1)
}
