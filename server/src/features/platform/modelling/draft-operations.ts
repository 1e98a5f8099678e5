import type { Operation } from '../../../kernel/operation.ts'
import { assertValid } from '../../../kernel/validation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { changeView } from '../../../shared/modelling/changes.ts'
import { normalised, own } from '../../../shared/modelling/normalise.ts'
import { fieldPath } from '../../../shared/modelling/problems.ts'
import { assess, isDestructive, summaryOf } from '../../../shared/modelling/publish.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import { lockApplication } from '../applications/store.ts'
import { answer, changeDraft, draftOf, placeOf, publishedOf } from './drafts.ts'
import {
  fieldOf,
  objectOf,
  withField,
  withObject,
  withoutField,
  withoutObject,
  withoutPart,
  withPart,
} from './editing.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

export const modelBase = '/v1/platform/applications/{saasAppId}/model'
const base = `${modelBase}/draft`
const etag = { ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"4"' } }
export const common = { area: 'Models', credentials: ['bld'], mcp: false } as const
const reading = { ...common, scope: 'applications.read', rateClass: 'read', transaction: 'read' } as const
const editing = {
  ...common,
  scope: 'models.edit',
  rateClass: 'write',
  transaction: 'write',
  ifMatch: true,
  responses: { 200: schema.Draft },
  responseHeaders: etag,
} as const
/** A model of 500 objects with what belongs to them. */
const bodyBytesMax = 4 * 1024 * 1024

const get = platformOperation({
  ...reading,
  id: 'developerPlatformModelDraftGet',
  method: 'GET',
  path: base,
  summary: 'Read the draft of the model.',
  description:
    'An application without a draft answers what is published, with revision 0. What is in the draft is nowhere to be seen for the users of the application before it is published.',
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
  path: base,
  summary: 'Save a whole model document as the draft.',
  description:
    'It replaces the draft, and counts as made from the newest release. A draft may be wrong: `:validate` says what is.',
  params: schema.ApplicationParams,
  body: schema.DraftBody,
  bodyBytesMax,
  errors: ['revision_conflict'],

  handler(context, { params, body, ifMatch }) {
    const { document, expectedRevision } = body
    const target = { type: 'model_draft', id: params.saasAppId }
    const guard = { expectedRevision, ifMatch }
    const tell = (before: object, after: object) => ({ action: 'model_draft.updated', target, before, after })
    return changeDraft(context, params.saasAppId, guard, () => normalised(document), tell, true)
  },
})

const discard = platformOperation({
  ...editing,
  id: 'developerPlatformModelDraftDiscard',
  method: 'DELETE',
  path: base,
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

const putObject = platformOperation({
  ...editing,
  id: 'developerPlatformModelObjectsPut',
  method: 'PUT',
  path: `${base}/objects/{objectKey}`,
  summary: 'Add an object to the draft, or replace it.',
  description: 'Without `fields` those of the draft stay. `archived: true` hides the object and keeps its records.',
  params: schema.ObjectParams,
  body: schema.ObjectBody,
  errors: ['revision_conflict'],

  handler(context, { params, body, ifMatch }) {
    const { objectKey } = params
    const target = { type: 'model_object', id: objectKey }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: body.expectedRevision, ifMatch },
      (document) => withObject(document, objectKey, body.object),
      (from, to) => {
        const [before, after] = [objectOf(from, objectKey) ?? null, objectOf(to, objectKey) ?? null]
        return { action: 'model_draft.object_put', target, before, after }
      },
    )
  },
})

const removeObject = platformOperation({
  ...editing,
  id: 'developerPlatformModelObjectsRemove',
  method: 'DELETE',
  path: `${base}/objects/{objectKey}`,
  summary: 'Remove an object from the draft.',
  description:
    'The rights of roles to it go too. An object with records can be published away only after it was archived, and with `confirmDataLoss`.',
  params: schema.ObjectParams,
  query: schema.RevisionQuery,
  errors: ['revision_conflict', 'object_not_found'],

  handler(context, { params, query, ifMatch }) {
    const { objectKey } = params
    const target = { type: 'model_object', id: objectKey }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: query.expectedRevision, ifMatch },
      (document) => withoutObject(document, objectKey),
      (from) => ({
        action: 'model_draft.object_removed',
        target,
        before: objectOf(from, objectKey) ?? null,
        after: null,
      }),
    )
  },
})

const putField = platformOperation({
  ...editing,
  id: 'developerPlatformModelFieldsPut',
  method: 'PUT',
  path: `${base}/objects/{objectKey}/fields/{fieldKey}`,
  summary: 'Add a field to an object of the draft, or replace it.',
  description: 'A new field comes behind the others. `archived: true` hides the field and keeps its values.',
  params: schema.FieldParams,
  body: schema.FieldBody,
  errors: ['revision_conflict', 'object_not_found'],

  handler(context, { params, body, ifMatch }) {
    const { objectKey, fieldKey } = params
    const target = { type: 'model_field', id: fieldPath(objectKey, fieldKey) }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: body.expectedRevision, ifMatch },
      (document) => withField(document, objectKey, fieldKey, body.field),
      (from, to) => {
        const [before, after] = [from, to].map((document) => fieldOf(document, objectKey, fieldKey) ?? null)
        return { action: 'model_draft.field_put', target, before: before!, after: after! }
      },
    )
  },
})

const removeField = platformOperation({
  ...editing,
  id: 'developerPlatformModelFieldsRemove',
  method: 'DELETE',
  path: `${base}/objects/{objectKey}/fields/{fieldKey}`,
  summary: 'Remove a field from an object of the draft.',
  description:
    'The rights of roles to it go too. A field with values can be published away only after it was archived, and with `confirmDataLoss`.',
  params: schema.FieldParams,
  query: schema.RevisionQuery,
  errors: ['revision_conflict', 'object_not_found', 'field_not_found'],

  handler(context, { params, query, ifMatch }) {
    const { objectKey, fieldKey } = params
    const target = { type: 'model_field', id: fieldPath(objectKey, fieldKey) }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: query.expectedRevision, ifMatch },
      (document) => withoutField(document, objectKey, fieldKey),
      (from) => ({
        action: 'model_draft.field_removed',
        target,
        before: fieldOf(from, objectKey, fieldKey) ?? null,
        after: null,
      }),
    )
  },
})

const putPart = platformOperation({
  ...editing,
  id: 'developerPlatformModelPartsPut',
  method: 'PUT',
  path: `${base}/{partKind}/{partKey}`,
  summary: 'Add a role, a relationship or a location template to the draft, or replace it.',
  description: 'What `part` must be is told by the kind in the path.',
  params: schema.PartParams,
  body: schema.PartBody,
  errors: ['revision_conflict'],

  handler(context, { params, body, ifMatch }) {
    const { partKind, partKey } = params
    assertValid(schema.partBodies[partKind], body)
    const target = { type: 'model_part', id: `${partKind}/${partKey}` }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: body.expectedRevision, ifMatch },
      (document) => withPart(document, partKind, partKey, body.part),
      (from, to) => {
        const [before, after] = [own(from[partKind], partKey) ?? null, own(to[partKind], partKey) ?? null]
        return { action: 'model_draft.part_put', target, before, after }
      },
    )
  },
})

const removePart = platformOperation({
  ...editing,
  id: 'developerPlatformModelPartsRemove',
  method: 'DELETE',
  path: `${base}/{partKind}/{partKey}`,
  summary: 'Remove a role, a relationship or a location template from the draft.',
  description:
    'A role can be published away when nobody and nothing holds it. Organizations keep the locations that they have.',
  params: schema.PartParams,
  query: schema.RevisionQuery,
  errors: ['revision_conflict', 'model_part_not_found'],

  handler(context, { params, query, ifMatch }) {
    const { partKind, partKey } = params
    const target = { type: 'model_part', id: `${partKind}/${partKey}` }
    return changeDraft(
      context,
      params.saasAppId,
      { expectedRevision: query.expectedRevision, ifMatch },
      (document) => withoutPart(document, partKind, partKey),
      (from) => ({
        action: 'model_draft.part_removed',
        target,
        before: own(from[partKind], partKey) ?? null,
        after: null,
      }),
    )
  },
})

const validate = platformOperation({
  ...common,
  scope: 'models.edit',
  rateClass: 'read',
  transaction: 'read',
  id: 'developerPlatformModelDraftValidate',
  method: 'POST',
  path: `${base}:validate`,
  summary: 'Say what stands against publishing the draft.',
  description:
    'What is wrong with the document, and what the data of organizations stands against, counted now. Nothing is changed.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Validity },
  errors: [],

  async handler(context, { params }) {
    const place = placeOf(context, params.saasAppId)
    const { document } = await draftOf(context, place)
    const { problems, refusals } = await assess(context.tx, await publishedOf(context, place), document)
    const issues = [...problems, ...refusals]
    return { status: 200, body: { valid: issues.length === 0, issues } }
  },
})

const diff = platformOperation({
  ...reading,
  id: 'developerPlatformModelDraftDiff',
  method: 'GET',
  path: `${base}/diff`,
  summary: 'Compare the draft with what is published.',
  description: 'Every change, in words and as JSON, with the rows at stake in all organizations.',
  params: schema.ApplicationParams,
  responses: { 200: schema.Diff },
  errors: [],

  async handler(context, { params }) {
    const place = placeOf(context, params.saasAppId)
    const { document } = await draftOf(context, place)
    const assessment = await assess(context.tx, await publishedOf(context, place), document)
    const changes = assessment.changes.map(changeView)
    return {
      status: 200,
      body: { changes, summary: summaryOf(assessment), destructive: isDestructive(assessment) },
    }
  },
})

export const draftOperations: readonly Operation<PlatformContext>[] = [
  get,
  put,
  discard,
  putObject,
  removeObject,
  putField,
  removeField,
  putPart,
  removePart,
  validate,
  diff,
]
