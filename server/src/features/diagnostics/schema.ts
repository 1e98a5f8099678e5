import Type from 'typebox'
import { credentialKinds } from '../../kernel/caller.ts'
import { AppParams, Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'

const correlationId = Uuid(
  'The id that the answer carried in X-Correlation-Id.',
  '0199a1b2-0000-7000-8000-0000000000c1',
)
const durationMs = Type.Number({ minimum: 0, description: 'How long it took, in milliseconds.', examples: [3.25] })

export const CorrelationParams = Strict({ ...AppParams, correlationId })

const Stage = Strict({
  name: Type.String({ description: 'A step on the way through the service.', examples: ['authenticate'] }),
  durationMs,
})

const Entry = Strict({
  level: Type.Enum(['warning', 'error'], {
    description: 'error where the service failed, warning where it refused.',
    examples: ['warning'],
  }),
  code: Type.String({ description: 'What was wrong: a code or a schema keyword.', examples: ['required'] }),
  field: Nullable(
    Type.String({ description: 'The field or position that was wrong; never its value.', examples: ['fields.amount'] }),
  ),
  message: Nullable(
    Type.String({ description: 'The same in words, where the code has any.', examples: ['The filter is not valid.'] }),
  ),
})

/** What is kept of one request (contract 3). */
export const RequestDiagnostics = Strict(
  {
    correlationId,
    occurredAt: Timestamp('When the request arrived.'),
    operationId: Type.String({
      description: 'The operation that was asked for.',
      examples: ['developerRecordsCreate'],
    }),
    method: Type.String({ description: 'The HTTP method of the operation.', examples: ['POST'] }),
    route: Type.String({
      description: 'The route of the operation, without the values of its parameters.',
      examples: ['/v1/apps/{saasAppId}/objects/{objectKey}/records'],
    }),
    status: Type.Integer({ description: 'The HTTP status that was answered.', examples: [400] }),
    code: Nullable(Type.String({ description: 'The error code that was answered.', examples: ['validation_failed'] })),
    durationMs,
    credentialKind: Type.Enum([...credentialKinds], {
      description: 'The kind of the credential that was used.',
      examples: ['live'],
    }),
    stages: Type.Array(Stage, { description: 'The steps that the request took, in order.' }),
    entries: Type.Array(Entry, { maxItems: 50, description: 'What went wrong, in names and never in values.' }),
  },
  { title: 'RequestDiagnostics' },
)
