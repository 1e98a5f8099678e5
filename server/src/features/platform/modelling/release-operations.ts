import { fail } from '../../../kernel/errors.ts'
import type { Operation, Reply } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { pageOf } from '../../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import { lockApplication } from '../applications/store.ts'
import { common, modelBase, reading } from './declarations.ts'
import { draftOf, placeOf, publishedOf, requireUpToDate } from './drafts.ts'
import { carryOut, requireTurn } from './publishing.ts'
import { itemOf, releaseOf } from './releases.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const publishing = {
  ...common,
  scope: 'models.publish',
  rateClass: 'write',
  transaction: 'write',
  responses: { 201: schema.Release },
  responseHeaders: {
    Location: { description: 'The address of the release.', example: '/v1/platform/applications/…/model/releases/3' },
  },
} as const

const publish = platformOperation({
  ...publishing,
  id: 'developerPlatformModelDraftPublish',
  method: 'POST',
  path: `${modelBase}/draft:publish`,
  summary: 'Publish the draft as a release.',
  description:
    'In one transaction: all of it, or nothing. Users work on meanwhile, and have the new model with their next request. Organizations that exist get the DataRoles and locations that they miss. Indexes are built afterwards, without stopping anybody; `indexState` and `searchState` in the schema of an object tell when they are ready.\n\nRefused with what stands against it, and how many rows: a data type that changes, `required` where values are missing, `unique` where they are shared, options and roles in use. A field or an object with data is archived first, in a release of its own, and removed with `confirmDataLoss` then. New limits of values hold for what is written from then on.',
  params: schema.ApplicationParams,
  body: schema.PublishBody,
  bodyOptional: true,
  ifMatch: true,
  errors: [
    'revision_conflict',
    'model_invalid',
    'model_change_refused',
    'model_unchanged',
    'draft_outdated',
    'model_busy',
  ],

  async handler(context, { params, body, ifMatch }) {
    const place = placeOf(context, params.saasAppId)
    await requireTurn(context.tx, place.appId)
    await lockApplication(context.tx, place.accountId, place.appId)
    const draft = await draftOf(context, place)
    requireRevision(draft.revision, body.expectedRevision, ifMatch)
    if (draft.revision === 0) throw fail('model_unchanged')
    requireUpToDate(draft)
    const published = await publishedOf(context, place)
    const { note = '', confirmDataLoss = false } = body
    const number = await carryOut(context, published, draft.document, { note, confirmDataLoss })
    await store.deleteDraft(context.tx, place)
    return released(context, place, number, 'model_release.published')
  },
})

const list = platformOperation({
  ...reading,
  id: 'developerPlatformModelReleasesList',
  method: 'GET',
  path: `${modelBase}/releases`,
  summary: 'List the releases of the model, newest first.',
  description: 'Without their documents, which come with each release.',
  params: schema.ApplicationParams,
  query: schema.ReleaseQuery,
  responses: { 200: schema.ReleasePage },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context, { params, query }) {
    const place = placeOf(context, params.saasAppId)
    const identity = ['releases', place]
    const { rows, nextCursor } = await pageOf(
      context.cursors,
      identity,
      query,
      (before, limit) => store.findReleases(context.tx, place, before?.[0] ?? null, limit),
      ({ releaseNumber }) => [String(releaseNumber)],
    )
    return { status: 200, body: { items: rows.map(itemOf), nextCursor } }
  },
})

const get = platformOperation({
  ...reading,
  id: 'developerPlatformModelReleasesGet',
  method: 'GET',
  path: `${modelBase}/releases/{releaseNumber}`,
  summary: 'Read a release with its model document and its changes.',
  description: 'The document is that of the whole model as it was then.',
  params: schema.ReleaseParams,
  responses: { 200: schema.Release },
  errors: ['release_not_found'],

  async handler(context, { params }) {
    const row = await store.findRelease(context.tx, placeOf(context, params.saasAppId), params.releaseNumber)
    if (!row) throw fail('release_not_found')
    return { status: 200, body: releaseOf(row) }
  },
})

const rollback = platformOperation({
  ...publishing,
  id: 'developerPlatformModelReleasesRollback',
  method: 'POST',
  path: `${modelBase}/releases/{releaseNumber}:rollback`,
  summary: 'Publish the model of an older release again.',
  description:
    'As a new release, under the rules of publishing, and only where nothing is lost: what was added since and holds data stands against it, with the number of rows. A draft stays, and follows where it does not change the same.',
  params: schema.ReleaseParams,
  body: schema.RollbackBody,
  bodyOptional: true,
  errors: ['release_not_found', 'model_invalid', 'model_change_refused', 'model_unchanged', 'model_busy'],

  async handler(context, { params, body }) {
    const place = placeOf(context, params.saasAppId)
    await requireTurn(context.tx, place.appId)
    await lockApplication(context.tx, place.accountId, place.appId)
    const older = await store.findRelease(context.tx, place, params.releaseNumber)
    if (!older) throw fail('release_not_found')
    const published = await publishedOf(context, place)
    const rolledBackTo = older.releaseNumber
    const { note = '' } = body
    const number = await carryOut(context, published, older.document, { note, confirmDataLoss: false, rolledBackTo })
    return released(context, place, number, 'model_release.rolled_back')
  },
})

async function released(context: PlatformContext, place: store.Place, number: number, action: string): Promise<Reply> {
  const row = (await store.findRelease(context.tx, place, String(number)))!
  const target = { type: 'model_release', id: String(number) }
  await recordAudit(context, { action, target, saasAppId: place.appId, before: null, after: itemOf(row) })
  context.afterCommit(() => context.modelling.buildIndexes(place.appId))
  const location = `/v1/platform/applications/${place.appId}/model/releases/${number}`
  return { status: 201, body: releaseOf(row), headers: { location } }
}

export const releaseOperations: readonly Operation<PlatformContext>[] = [publish, list, get, rollback]
