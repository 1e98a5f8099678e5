import type { Operation } from '../../kernel/operation.ts'
import type { Context } from '../../shared/context.ts'
import { listDuplicates } from './contacts/duplicates.ts'
import { mergeOperation } from './contacts/merge.ts'
import { readTimeline } from './contacts/timeline.ts'
import { listTypes } from './contacts/types.ts'
import { contacts } from './descriptors/contacts.ts'
import { modules } from './descriptors.ts'
import { exchangeOperationsOf } from './exchange.ts'
import type { Module } from './module.ts'
import { readingOperationsOf } from './reading.ts'
import { type Shapes, shapesOf } from './schemas.ts'
import { writingOperationsOf } from './writing.ts'

/** The operations that a module has by being declared. */
function operationsOf(module: Module): readonly Operation<Context>[] {
  const shapes = shapesOf(module)
  const common = [
    ...readingOperationsOf(module, shapes),
    ...writingOperationsOf(module, shapes),
    ...exchangeOperationsOf(module),
  ]
  return module === contacts ? [...common, ...contactOperations(shapes)] : common
}

/** What contacts have beside that. */
function contactOperations(shapes: Shapes): readonly Operation<Context>[] {
  return [listTypes, listDuplicates, mergeOperation(shapes), readTimeline]
}

export const moduleOperations: readonly Operation<Context>[] = modules.flatMap(operationsOf)
