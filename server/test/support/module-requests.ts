import { operationId } from '../../src/features/modules/declaration.ts'
import { modules } from '../../src/features/modules/descriptors.ts'
import type { Module } from '../../src/features/modules/module.ts'
import { registry } from '../../src/operations.ts'

/** Good requests to the operations of native modules: those that their declarations show as examples. */
export interface ModuleRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly status?: number
}

/** Records of the organisation `a`, by the key of their module. */
export interface ModuleRecords {
  readonly live: Readonly<Record<string, string>>
  readonly archived: Readonly<Record<string, string>>
  /** A contact that may become a part of the live one. */
  readonly otherContact: string
}

/** The body that the declaration of an operation shows. */
function shownBody(operationIdentifier: string): Readonly<Record<string, unknown>> {
  const body = registry.get(operationIdentifier)?.body as { examples?: readonly Record<string, unknown>[] } | undefined
  return body?.examples?.[0] ?? {}
}

let records = 0

/** The shown body of a new record, with a name of its own: some modules work out a unique address of the name. */
export function newRecord(module: Module): Readonly<Record<string, unknown>> {
  const body = shownBody(operationId(module, 'Create'))
  const name = body[module.nameField]
  return typeof name === 'string' ? { ...body, [module.nameField]: `${name} ${++records}` } : body
}

export function moduleRequests(made: () => ModuleRecords): Record<string, () => ModuleRequest> {
  return Object.assign({}, ...modules.map((module) => requestsTo(module, made)), contactRequests(made))
}

function requestsTo(module: Module, made: () => ModuleRecords): Record<string, () => ModuleRequest> {
  const id = (verb: string) => operationId(module, verb)
  const live = () => ({ params: { recordId: made().live[module.key]! } })
  const archived = () => ({ params: { recordId: made().archived[module.key]! } })
  return {
    [id('List')]: () => ({}),
    [id('Count')]: () => ({}),
    [id('Get')]: live,
    [id('GetHistory')]: live,
    [id('ListRelationships')]: live,
    [id('Create')]: () => ({ body: newRecord(module), status: 201 }),
    [id('Update')]: () => ({ ...live(), body: shownBody(id('Update')) }),
    [id('Archive')]: archived,
    [id('Restore')]: () => ({ ...live(), body: {} }),
    [id('Assign')]: () => ({ ...live(), body: { locationId: null } }),
    [id('Export')]: () => ({ body: { format: 'csv' }, status: 202 }),
    [id('Import')]: () => ({ body: { format: 'csv', content: 'externalKey\n' }, status: 202 }),
    [id('Batch')]: () => ({ body: { items: [{ operation: 'create', ...newRecord(module) }] } }),
  }
}

function contactRequests(made: () => ModuleRecords): Record<string, () => ModuleRequest> {
  const live = () => ({ params: { recordId: made().live['contacts']! } })
  return {
    developerModulesContactsListTypes: () => ({}),
    developerModulesContactsListDuplicates: () => ({}),
    developerModulesContactsGetTimeline: live,
    developerModulesContactsMerge: () => ({ ...live(), body: { otherRecordId: made().otherContact } }),
  }
}
