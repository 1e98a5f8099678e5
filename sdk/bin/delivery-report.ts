import type { IncomingHttpHeaders } from 'node:http'
import { styleText } from 'node:util'
import { type WebhookEvent, WebhookVerificationError } from '../src/verify-webhook.ts'

/** What came of one request, as the catcher prints it. */
export interface ReceivedDelivery {
  readonly receivedAt: Date
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The event, or why there is none to be trusted. */
  readonly result: WebhookEvent | WebhookVerificationError
  readonly status: number
  /** The same event came before: deliveries are at least once. */
  readonly isRepeated: boolean
}

const bodyLengthMax = 20_000

/** Lines for a terminal. Whatever a stranger sent cannot steer it: control characters are written out. */
export function reportOf(delivery: ReceivedDelivery, hasColours: boolean): string {
  const paint = (style: 'green' | 'red' | 'yellow' | 'dim' | 'bold', text: string) =>
    hasColours ? styleText(style, text, { validateStream: false }) : text
  const { result, headers } = delivery
  const time = paint('dim', delivery.receivedAt.toISOString().slice(11, 23))
  const answered = paint('dim', `answered ${delivery.status}`)
  if (result instanceof WebhookVerificationError) {
    const verdict = paint('red', `✗ ${result.reason}`)
    return [
      `${time} ${verdict} ${answered}`,
      `  ${result.message}`,
      paint('dim', indent(legible(delivery.body))),
      '',
    ].join('\n')
  }
  const repeated = delivery.isRepeated ? ` ${paint('yellow', 'seen before')}` : ''
  const rows = [
    ['event', result.id],
    ['delivery', headers['x-service-delivery']],
    ['occurred', result.occurredAt],
    ['subject', result.subject && `${result.subject.type} ${result.subject.id}`],
    ['actor', result.actor?.kind],
  ]
  const facts = rows.flatMap(([name, value]) =>
    value === undefined ? [] : `  ${paint('dim', `${name}`.padEnd(9))}${legible(`${value}`)}`,
  )
  const title = `${time} ${paint('green', '✓')} ${paint('bold', legible(`${result.type}`))}${repeated} ${answered}`
  return [title, ...facts, indent(legible(JSON.stringify(result.data, null, 2) ?? '')), ''].join('\n')
}

function legible(text: string): string {
  const shown = text.length > bodyLengthMax ? `${text.slice(0, bodyLengthMax)}…` : text
  return shown.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ')
}
