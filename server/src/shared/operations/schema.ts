import Type from 'typebox'
import { Strict, Uuid } from '../../kernel/schemas.ts'

/** Shapes that everything shares which answers 202 (contract 9). */
export const operationStatuses = [
  'queued',
  'running',
  'succeeded',
  'partially_succeeded',
  'failed',
  'cancelling',
  'cancelled',
] as const
export type OperationStatus = (typeof operationStatuses)[number]

export const operationId = Uuid('The operation.', '0199a1b2-0000-7000-8000-0000000000f9')

export const OperationAccepted = Strict(
  {
    operationId,
    status: Type.Enum(['queued'], { description: 'Where it stands: it waits for a worker.', examples: ['queued'] }),
    statusUrl: Type.String({
      description: 'The path to ask for the status.',
      examples: ['/v1/apps/0199a1b2-0000-7000-8000-000000000001/operations/0199a1b2-0000-7000-8000-0000000000f9'],
    }),
    correlationId: Uuid('Names the request that began it.', '0199a1b2-0000-7000-8000-0000000000c1'),
  },
  { title: 'OperationAccepted', description: 'The work was accepted, and goes on after the answer.' },
)

export const acceptedHeaders = {
  Location: { description: 'The path to ask for the status.', example: '/v1/apps/…/operations/…' },
  'Retry-After': { description: 'Seconds after which to ask for the status.', example: '1' },
} as const
