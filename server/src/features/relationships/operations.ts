import Type from 'typebox'
import type { Operation } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { type Context, operation } from '../../shared/context.ts'
import { profileOf, recordScope } from '../../shared/records/scope.ts'
import { recordId } from '../../shared/records/shapes.ts'
import type { LinkScope } from '../../shared/relationships/link-changes.ts'
import { createLink, removeLink } from '../../shared/relationships/linking.ts'
import { linksPage, relatedPage } from '../../shared/relationships/pages.ts'
import {
  Link,
  LinkQuery,
  Links,
  RelatedQuery,
  RelatedRecords,
  relationshipId,
} from '../../shared/relationships/schema.ts'
import { linkView } from '../../shared/relationships/views.ts'
import { NewLink } from './schema.ts'

const base = '/v1/apps/{saasAppId}/relationships'
const area = 'Relationships'
const reading = {
  area,
  credentials: ['live', 'dat'],
  scope: 'relationships.read',
  transaction: 'read',
  rateClass: 'read',
  mcp: true,
} as const
const writing = {
  ...reading,
  scope: 'relationships.write',
  objectActions: ['update'],
  transaction: 'write',
  rateClass: 'write',
} as const
const pageErrors = ['reference_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'] as const

const list = operation({
  ...reading,
  id: 'developerRelationshipsList',
  method: 'GET',
  path: base,
  summary: 'List which records are related, the latest first.',
  description:
    'Shows a relationship where the caller sees the records at both ends and neither is archived. Filters narrow together.',
  params: Strict(AppParams),
  query: LinkQuery,
  responses: { 200: Links },
  errors: [...pageErrors],

  async handler(context, { query }) {
    return { status: 200, body: await linksPage(context, await linkScope(context), query) }
  },
})

const listOfRecord = operation({
  ...reading,
  id: 'developerRecordsListRelationships',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/objects/{objectKey}/records/{recordId}/relationships',
  summary: 'List what a record is related to, the latest related first.',
  description:
    'From either end, with what names the other record. What the caller may not see is absent, and so is what is archived.',
  params: Strict({
    ...AppParams,
    objectKey: Type.String({ maxLength: 50, description: 'The key of the object.', examples: ['deal'] }),
    recordId,
  }),
  query: RelatedQuery,
  responses: { 200: RelatedRecords },
  errors: ['object_not_found', 'record_not_found', ...pageErrors],

  async handler(context, { params, query }) {
    const scope = await recordScope(context, params.objectKey)
    return { status: 200, body: await relatedPage(context, scope, params.recordId, query) }
  },
})

const create = operation({
  ...writing,
  id: 'developerRelationshipsCreate',
  method: 'POST',
  path: base,
  summary: 'Relate two records.',
  description:
    'Takes the right to update the object at `from`, and sight of both records. Records that are related already answer 200 ' +
    'with the relationship that there is. A one-to-many relationship gives each record at `to` one at `from`: 409 ' +
    '`duplicate_value` where it has another.',
  params: Strict(AppParams),
  body: NewLink,
  responses: { 200: Link, 201: Link },
  responseHeaders: {
    Location: { description: 'The address of the relationship.', example: '/v1/apps/…/relationships/…' },
  },
  errors: ['reference_not_found', 'permission_denied', 'record_archived', 'duplicate_value'],

  async handler(context, { body }) {
    const { row, relationship, created } = await createLink(await linkScope(context), body)
    const view = linkView(row, relationship)
    if (!created) return { status: 200, body: view }
    const location = `${base.replace('{saasAppId}', context.caller.appId)}/${view.relationshipId}`
    return { status: 201, body: view, headers: { location } }
  },
})

const remove = operation({
  ...writing,
  id: 'developerRelationshipsDelete',
  method: 'DELETE',
  path: `${base}/{relationshipId}`,
  summary: 'End the relationship of two records.',
  description:
    'Takes the right to update the object at `from`. A relationship that the caller does not see answers as one that does not exist.',
  params: Strict({ ...AppParams, relationshipId }),
  responses: { 200: Link },
  errors: ['relationship_not_found', 'permission_denied'],

  async handler(context, { params }) {
    const { row, relationship } = await removeLink(await linkScope(context), params.relationshipId)
    return { status: 200, body: linkView(row, relationship) }
  },
})

async function linkScope(context: Context): Promise<LinkScope> {
  const { caller, tx, now } = context
  const known = profileOf(context)
  return { caller, tx, now, profile: known instanceof Promise ? await known : known }
}

export const relationshipOperations: readonly Operation<Context>[] = [list, create, remove, listOfRecord]
