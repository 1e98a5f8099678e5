import type { Operation } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { beginExport, beginImport, exporting, importing } from '../../shared/exchange/begin.ts'
import { basePath, operationId, readingOf, writingOf } from './declaration.ts'
import type { Module } from './module.ts'
import { ModuleParams } from './schemas.ts'

/** The operations of a module that move many records at once: export and import. */
export function exchangeOperationsOf(module: Module): readonly Operation<Context>[] {
  const reading = readingOf(module)
  const writing = writingOf(module)
  const things = module.pluralLabel.toLowerCase()
  const exchanged = { objectKey: module.key, native: true }

  return [
    operation({
      ...reading,
      ...exporting,
      id: operationId(module, 'Export'),
      path: `${basePath}/${module.key}:export`,
      summary: `Write the ${things} of a search into a file.`,
      params: ModuleParams,

      handler: (context, { body }) => beginExport(context, { ...exchanged, scope: reading.scope }, body),
    }),
    operation({
      ...writing,
      ...importing,
      id: operationId(module, 'Import'),
      objectActions: ['create', 'update'],
      path: `${basePath}/${module.key}:import`,
      summary: `Create or change ${things} from a file.`,
      params: ModuleParams,

      handler: (context, { body }) => beginImport(context, { ...exchanged, scope: writing.scope }, body),
    }),
  ]
}
