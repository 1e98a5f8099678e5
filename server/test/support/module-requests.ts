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
export function shownBody(operationIdentifier: string): unknown {
  const body = registry.get(operationIdentifier)?.body as { examples?: readonly unknown[] } | undefined
  return body?.examples?.[0]
}

export function moduleRequests(records: () => ModuleRecords): Record<string, () => ModuleRequest> {
  return Object.assign({}, ...modules.map((module) => requestsTo(module, records)), contactRequests(records))
}

function requestsTo(module: Module, records: () => ModuleRecords): Record<string, () => ModuleRequest> {
  const id = (verb: string) => operationId(module, verb)
  const live = () => ({ params: { recordId: records().live[module.key]! } })
  const archived = () => ({ params: { recordId: records().archived[module.key]! } })
  return {
    [id('List')]: () => ({}),
    [id('Count')]: () => ({}),
    [id('Get')]: live,
    [id('GetHistory')]: live,
    [id('ListRelationships')]: live,
    [id('Create')]: () => ({ body: shownBody(id('Create')), status: 201 }),
    [id('Update')]: () => ({ ...live(), body: shownBody(id('Update')) }),
    [id('Archive')]: archived,
    [id('Restore')]: () => ({ ...live(), body: {} }),
    [id('Assign')]: () => ({ ...live(), body: { locationId: null } }),
    [id('Batch')]: () => ({ body: shownBody(id('Batch')) }),
  }
}

function contactRequests(records: () => ModuleRecords): Record<string, () => ModuleRequest> {
  const live = () => ({ params: { recordId: records().live['contacts']! } })
  return {
    developerModulesContactsListTypes: () => ({}),
    developerModulesContactsListDuplicates: () => ({}),
    developerModulesContactsGetTimeline: live,
    developerModulesContactsMerge: () => ({ ...live(), body: { otherRecordId: records().otherContact } }),
  }
}
