import { createDeliveryWorker } from './features/webhooks/delivery/worker.ts'

/** What sends the deliveries of webhooks, as the service is put together with it. */
export const webhookDeliveries = { createWorker: createDeliveryWorker } as const
