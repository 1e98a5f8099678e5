import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from '../src/verify-webhook.ts'
import type { ReceivedDelivery } from './delivery-report.ts'

export interface CatcherOptions {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  readonly secrets: readonly string[]
  /** What a genuine delivery is answered with. */
  readonly status: number
  readonly onDelivery: (delivery: ReceivedDelivery) => void
}

export interface Catcher {
  readonly url: string
  close(): Promise<void>
}

/** Deliveries are smaller; whoever sends more is no Portico. */
const bodyBytesMax = 2 * 1024 * 1024
const eventsRemembered = 10_000

/** A receiver for development: verifies every delivery, hands it to `onDelivery`, and answers; 400 where it is not genuine. */
export async function startCatcher(options: CatcherOptions): Promise<Catcher> {
  const seen = new Set<string>()

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.writeHead(405, { allow: 'POST' }).end()
      return
    }
    const body = await readBody(request)
    if (body === undefined) {
      response.writeHead(413, { connection: 'close' }).end()
      return
    }
    const { headers } = request
    const result = await resultOf({ headers, body, secret: options.secrets })
    const isGenuine = !(result instanceof WebhookVerificationError)
    const status = isGenuine ? options.status : 400
    response.writeHead(status).end()
    const isRepeated = isGenuine && seen.has(result.id)
    if (isGenuine && seen.size < eventsRemembered) seen.add(result.id)
    const text = body.toString()
    options.onDelivery({ receivedAt: new Date(), headers, body: text, result, status, isRepeated })
  }

  const server = createServer((request, response) => {
    // A sender that breaks off is no delivery.
    receive(request, response).catch(() => response.destroy())
  })
  server.listen(options.port, options.host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}/`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function resultOf(
  delivery: Parameters<typeof verifyWebhook>[0],
): Promise<WebhookEvent | WebhookVerificationError> {
  try {
    return await verifyWebhook(delivery)
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error
    throw error
  }
}
