import type { Operation } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { accessProfile, type ObjectAccess, withinScopes } from '../../shared/access/permissions.ts'
import { dataTypeOf, isReadOnly } from '../../shared/catalogue/data-types.ts'
import { type Context, operation } from '../../shared/context.ts'
import { systemFieldKeys } from '../../shared/records/filter.ts'
import { fieldsSchemas } from '../../shared/records/json-schema.ts'
import { recordScope } from '../../shared/records/scope.ts'
import { hopsFrom } from '../../shared/relationships/definitions.ts'
import { ObjectList, ObjectParams, ObjectSchema } from './schema.ts'

const area = 'Objects'

const listObjects = operation({
  id: 'developerObjectsList',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/objects',
  area,
  summary: 'List the objects that the caller may read.',
  description: 'Objects that the caller may not read are absent. What it may do with records is said for each.',
  credentials: ['live', 'dat'],
  scope: null,
  rateClass: 'read',
  transaction: 'read',
  mcp: true,
  params: Strict(AppParams),
  responses: { 200: ObjectList },
  errors: [],

  async handler({ caller, catalogue, tx }) {
    const profile = withinScopes(accessProfile(await catalogue.modelFor(tx, caller), caller), caller)
    return { status: 200, body: { objects: [...profile.objects.values()].map(summary) } }
  },
})

const getSchema = operation({
  id: 'developerObjectsGetSchema',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/objects/{objectKey}/schema',
  area,
  summary: 'Read the schema of an object, as far as the caller may see it.',
  description:
    'Fields with types, limits, operators and rights, what `sort` takes, where references lead, and JSON Schemas of `fields`. ' +
    'A field that the caller may not read is absent.',
  credentials: ['live', 'dat'],
  scope: null,
  rateClass: 'read',
  transaction: 'read',
  mcp: true,
  params: ObjectParams,
  responses: { 200: ObjectSchema },
  errors: ['object_not_found'],

  async handler(context, { params }) {
    const { access, profile } = await recordScope(context, params.objectKey)
    const referenced = (objectId: string | null) =>
      objectId === null ? undefined : profile.byObjectId.get(objectId)?.object.objectKey
    return {
      status: 200,
      body: {
        ...summary(access),
        fields: access.readable.map((field) =>
          fieldSchema(access, field.fieldKey, referenced(field.referenceObjectId)),
        ),
        relationships: [
          ...access.readable.flatMap((field) => {
            const objectKey = referenced(field.referenceObjectId)
            const { fieldKey: relationshipKey, label } = field
            return objectKey ? [{ relationshipKey, label, objectKey, kind: 'reference' }] : []
          }),
          ...hopsFrom(access, profile).map(({ name, definition, inverse, access: far }) => ({
            relationshipKey: name,
            label: inverse ? definition.inverseLabel : definition.label,
            objectKey: far.object.objectKey,
            kind: 'relationship',
            cardinality: definition.cardinality,
          })),
        ],
        searchState: access.object.searchState,
        sortValues: sortValues(access),
        jsonSchema: fieldsSchemas(access),
      },
    }
  },
})

function summary(access: ObjectAccess) {
  const { objectKey, label, pluralLabel, kind, schemaRevision } = access.object
  const operations = [
    ...['search', 'count', 'get', 'history'],
    ...(access.create ? ['create'] : []),
    ...(access.update ? ['update'] : []),
    ...(access.archive ? ['archive', 'restore'] : []),
    ...(access.create || access.update || access.archive ? ['batch'] : []),
  ]
  const { create, update, archive } = access
  return {
    objectKey,
    label,
    pluralLabel,
    kind,
    schemaRevision,
    operations,
    access: { read: true, create, update, archive },
  }
}

function fieldSchema(access: ObjectAccess, fieldKey: string, referenceKey: string | undefined) {
  const field = access.readableByKey.get(fieldKey)!
  const type = dataTypeOf(field)
  return {
    fieldKey,
    label: field.label,
    dataType: field.dataType,
    required: field.required,
    unique: field.unique,
    readOnly: isReadOnly(field),
    filterable: type.operators.length > 0,
    sortable: type.sortable,
    searchable: field.searchable,
    operators: type.operators,
    options: field.options,
    validation: field.validation,
    reference: referenceKey === undefined ? null : { objectKey: referenceKey },
    access: { read: true, write: access.writableKeys.has(fieldKey) },
    indexState: field.indexState,
  }
}

function sortValues(access: ObjectAccess): string[] {
  const fields = access.readable.filter((field) => dataTypeOf(field).sortable).map((field) => field.fieldKey)
  const named = access.readableByKey.has(access.object.nameField.fieldKey) ? ['name'] : []
  const system = systemFieldKeys.filter((key) => ['createdAt', 'updatedAt', 'archivedAt', 'revision'].includes(key))
  return [...new Set(['created', 'updated', ...named, ...fields, ...system])].flatMap((key) => [
    `${key}_asc`,
    `${key}_desc`,
  ])
}

export const objectOperations: readonly Operation<Context>[] = [listObjects, getSchema]
