import { fail } from '../../../kernel/errors.ts'
import type { Operation } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { changeView } from '../../../shared/modelling/changes.ts'
import { normalised } from '../../../shared/modelling/normalise.ts'
import { orderedChange } from '../../../shared/modelling/order.ts'
import { isDestructive, summaryOf } from '../../../shared/modelling/publish.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import { lockApplication } from '../applications/store.ts'
import { common, draftBase, editing, etag, reading } from './declarations.ts'
import { answer, changeDraft, draftBytesMax, draftOf, placeOf, publishedOf, requireUpToDate } from './drafts.ts'
import { assessed } from './publishing.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const get = platformOperation({
  ...reading,
  id: 'developerPlatformModelDraftGet',
  method: 'GET',
  path: draftBase,
  summary: 'Read the draft of the model.',
  description:
    'An application without a draft answers what is published, with revision 0. What was published since the draft was begun is in it, unless both have changed the same: then it is as it was, and begun from an older release. What is in the draft is nowhere to be seen for the users of the application before it is published.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Draft },
  responseHeaders: etag,
  errors: [],

  async handler(context, { params }) {
    return answer(await draftOf(context, placeOf(context, params.saasAppId)))
  },
})

const put = platformOperation({
  ...editing,
  id: 'developerPlatformModelDraftPut',
  method: 'PUT',
  path: draftBase,
  summary: 'Save a whole model document as the draft.',
  description:
    'It replaces the draft. With `basedOnRelease`, which came with the document when it was read, what was published meanwhile is kept; without, the document counts as made from the newest release, and what it lacks of that is removed. A draft may be wrong: `:validate` says what is.',
  params: schema.ApplicationParams,
  body: schema.DraftBody,
  bodyBytesMax: draftBytesMax,
  errors: ['revision_conflict'],

  handler(context, { params, body, ifMatch }) {
    const { document, basedOnRelease, expectedRevision } = body
    const target = { type: 'model_draft', id: params.saasAppId }
    const guard = { expectedRevision, ifMatch }
    const tell = (before: object, after: object) => ({ action: 'model_draft.updated', target, before, after })
    return changeDraft(
      context,
      params.saasAppId,
      guard,
      () => normalised(document),
      tell,
      (newest) => {
        if (basedOnRelease === undefined || basedOnRelease <= newest) return basedOnRelease ?? newest
        throw fail('validation_failed', { field: 'basedOnRelease', message: 'There is no such release.' })
      },
    )
  },
})

const discard = platformOperation({
  ...editing,
  id: 'developerPlatformModelDraftDiscard',
  method: 'DELETE',
  path: draftBase,
  summary: 'Discard the draft.',
  description: 'Answers what is published. Without a draft nothing happens.',
  params: schema.ApplicationParams,
  query: schema.RevisionQuery,
  errors: ['revision_conflict'],

  async handler(context, { params, query, ifMatch }) {
    const place = placeOf(context, params.saasAppId)
    await lockApplication(context.tx, place.accountId, place.appId)
    const before = await draftOf(context, place)
    requireRevision(before.revision, query.expectedRevision, ifMatch)
    if (before.revision === 0) return answer(before)
    await store.deleteDraft(context.tx, place)
    const target = { type: 'model_draft', id: place.appId }
    const told = { saasAppId: place.appId, before: before.document, after: null }
    await recordAudit(context, { action: 'model_draft.discarded', target, ...told })
    return answer(await draftOf(context, place))
  },
})

const validate = platformOperation({
  ...common,
  scope: 'models.edit',
  rateClass: 'read',
  transaction: 'read',
  id: 'developerPlatformModelDraftValidate',
  method: 'POST',
  path: `${draftBase}:validate`,
  summary: 'Say what stands against publishing the draft.',
  description:
    'What is wrong with the document, and what the data of organizations stands against, counted now. Nothing is changed. A draft that changes what a newer release has changed as well is refused as by `:publish`.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Validity },
  errors: ['draft_outdated'],

  async handler(context, { params }) {
    const place = placeOf(context, params.saasAppId)
    const draft = await draftOf(context, place)
    requireUpToDate(draft)
    const { problems, refusals } = await assessed(context.tx, await publishedOf(context, place), draft.document)
    const issues = [...problems, ...refusals]
    return { status: 200, body: { valid: issues.length === 0, issues } }
  },
})

const diff = platformOperation({
  ...reading,
  id: 'developerPlatformModelDraftDiff',
  method: 'GET',
  path: `${draftBase}/diff`,
  summary: 'Compare the draft with what is published.',
  description: 'Every change, in words and as JSON, with the rows at stake in all organizations.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Diff },
  errors: [],

  async handler(context, { params }) {
    const place = placeOf(context, params.saasAppId)
    const { document } = await draftOf(context, place)
    const assessment = await assessed(context.tx, await publishedOf(context, place), document)
    const changes = assessment.changes.map((change) => orderedChange(changeView(change)))
    return {
      status: 200,
      body: { changes, summary: summaryOf(assessment), destructive: isDestructive(assessment) },
    }
  },
})

export const draftOperations: readonly Operation<PlatformContext>[] = [get, put, discard, validate, diff]
