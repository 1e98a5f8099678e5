import type { Operation } from '../../../kernel/operation.ts'
import { assertValid } from '../../../kernel/validation.ts'
import { own } from '../../../shared/modelling/normalise.ts'
import { fieldPath } from '../../../shared/modelling/problems.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { draftBase, editing } from './declarations.ts'
import { changeDraft } from './drafts.ts'
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

const putObject = platformOperation({
  ...editing,
  id: 'developerPlatformModelObjectsPut',
  method: 'PUT',
  path: `${draftBase}/objects/{objectKey}`,
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
  path: `${draftBase}/objects/{objectKey}`,
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
  path: `${draftBase}/objects/{objectKey}/fields/{fieldKey}`,
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
  path: `${draftBase}/objects/{objectKey}/fields/{fieldKey}`,
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
  path: `${draftBase}/{partKind}/{partKey}`,
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
  path: `${draftBase}/{partKind}/{partKey}`,
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

export const partOperations: readonly Operation<PlatformContext>[] = [
  putObject,
  removeObject,
  putField,
  removeField,
  putPart,
  removePart,
]
