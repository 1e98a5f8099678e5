import { fail } from '../../kernel/errors.ts'
import type { Scope } from '../../kernel/scopes.ts'
import { type RecordContext, type RecordScope, recordScope } from '../../shared/records/scope.ts'
import type { Module } from './module.ts'

/** What the operations of one module have in common. */
export const basePath = '/v1/apps/{saasAppId}/modules'

/** `developerModulesCalendarEventsList`. */
export function operationId({ key }: Pick<Module, 'key'>, verb: string): string {
  const name = key.replaceAll(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase())
  return `developerModules${name}${verb}`
}

export function readingOf(module: Pick<Module, 'key' | 'pluralLabel' | 'description'>) {
  return {
    area: module.pluralLabel,
    areaDescription: module.description,
    credentials: ['live', 'dat'],
    scope: `modules.${module.key}.read` as Scope,
    objectKey: module.key,
    transaction: 'read',
    mcp: true,
  } as const
}

export function writingOf(module: Pick<Module, 'key' | 'pluralLabel' | 'description'>) {
  return {
    ...readingOf(module),
    scope: `modules.${module.key}.write` as Scope,
    rateClass: 'write',
    transaction: 'write',
  } as const
}

export const etag = {
  ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' },
}

/**
 * The caller at work on the records of a module. An application whose own object has taken the name goes without the
 * module, and says so as for an object that the caller may not read.
 */
export async function moduleScope(context: RecordContext, { key }: Pick<Module, 'key'>): Promise<RecordScope> {
  const scope = await recordScope(context, key)
  if (scope.access.object.kind !== 'native') throw fail('object_not_found')
  return scope
}
