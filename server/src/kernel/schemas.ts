import Type from 'typebox'

/** Shapes that many operations share. Every property that reaches the wire has a description and an example. */

export const uuidPattern = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$'

/** A UUID in its textual form, any version; ids that the service makes are UUIDv7 (RFC 9562). */
export function Uuid(description: string, example = '0199a1b2-0000-7000-8000-000000000001') {
  return Type.String({ format: 'uuid', pattern: uuidPattern, description, examples: [example] })
}

/** ISO 8601 in UTC with milliseconds. */
export function Timestamp(description: string, example = '2026-09-14T09:30:00.000Z') {
  return Type.String({ format: 'date-time', description, examples: [example] })
}

export function Nullable<T extends Type.TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()])
}

/** A strict object: an unknown property is refused with `unknown_field`. */
export function Strict<P extends Type.TProperties>(properties: P, options: Type.TObjectOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

export const AppParams = {
  saasAppId: Uuid('The application. It must be the application of the credential.'),
}

/** Who did something on the platform; the same shape that records have. */
export function PlatformActor(description: string) {
  return Strict(
    {
      kind: Type.Enum(['builder', 'user', 'credential', 'visitor', 'system'], {
        description: 'What acted.',
        examples: ['builder'],
      }),
      id: Type.String({
        maxLength: 200,
        description: 'The id of a builder or user, a key id, or the name of a part of the service.',
        examples: ['0199a1b2-0000-7000-8000-0000000000f1'],
      }),
    },
    { description },
  )
}

export const Revision = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Counts the changes of the record, from 1. Also the value of its ETag.',
  examples: [1],
})

/** A total as a JSON number: exact up to 2^53 − 1, which no table here reaches. */
export const Total = Type.Integer({
  minimum: 0,
  description: 'An exact int64 count of what the caller may see; never an estimate.',
  examples: [128],
})

/** The version of the contract document (specification 9). */
export const contractVersion = '1.0.0-developer-platform'

export const pageSizeDefault = 50
export const pageSizeMax = 200

/** The page size of a list: 50 by default, 200 at most; above that 400 `page_size_exceeded`, never a silent clamp. */
export function PageSize(maximum = pageSizeMax) {
  return Type.Integer({
    minimum: 1,
    maximum,
    default: Math.min(pageSizeDefault, maximum),
    description: `Rows on a page: 1 to ${maximum}.`,
    examples: [Math.min(pageSizeDefault, maximum)],
    'x-error-above-maximum': 'page_size_exceeded',
  })
}

/** The body of every error (specification 2.2). */
export const ApiErrorResponse = Type.Object(
  {
    error: Type.String({
      description: 'A safe explanation for people.',
      examples: ['The record was not found.'],
    }),
    code: Type.String({ description: 'A stable identifier of the error.', examples: ['record_not_found'] }),
    correlationId: Type.String({
      description: 'Names this request in logs and diagnostics; also in the header X-Correlation-Id.',
      examples: ['0199a1b2-0000-7000-8000-0000000000c1'],
    }),
    details: Type.Optional(
      Type.Array(
        Strict({
          field: Type.String({ description: 'The field or position to correct.', examples: ['fields.amount'] }),
          code: Type.String({ description: 'Why it is wrong.', examples: ['field_value_invalid'] }),
          message: Type.String({ description: 'The same in words.', examples: ['Expected a decimal number.'] }),
        }),
        { description: 'What to correct, field by field.' },
      ),
    ),
  },
  { title: 'ApiErrorResponse', description: 'The body of every error.' },
)
