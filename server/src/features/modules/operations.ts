import type { Operation } from '../../kernel/operation.ts'
import type { Context } from '../../shared/context.ts'
import { modules } from './descriptors.ts'
import type { Module } from './module.ts'
import { readingOperationsOf } from './reading.ts'
import { shapesOf } from './schemas.ts'
import { writingOperationsOf } from './writing.ts'

/** The operations that a module has by being declared. Import and export join them here. */
function operationsOf(module: Module): readonly Operation<Context>[] {
  const shapes = shapesOf(module)
  return [...readingOperationsOf(module, shapes), ...writingOperationsOf(module, shapes)]
}

export const moduleOperations: readonly Operation<Context>[] = modules.flatMap(operationsOf)
