import type { Operation } from '../../kernel/operation.ts'
import type { Context } from '../../shared/context.ts'
import { deliveryOperations } from './deliveries.ts'
import { eventOperations } from './events.ts'
import { recover } from './recovery.ts'
import { subscriptionOperations } from './subscriptions.ts'

export const webhookOperations: readonly Operation<Context>[] = [
  ...eventOperations,
  ...subscriptionOperations,
  ...deliveryOperations,
  recover,
]
