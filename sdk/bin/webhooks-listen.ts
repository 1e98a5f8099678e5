import { parseArgs } from 'node:util'
import { startCatcher } from './catcher.ts'
import { reportOf } from './delivery-report.ts'

/** `npm run webhooks:listen`: a receiver on this machine that shows what it gets. See docs/webhooks-receiving.md. */
const usage = `Usage: npm run webhooks:listen -- [--secret <whsec_…>] [--port <port>] [--host <address>] [--status <status>]

  --secret   the secret of the subscription, shown when it is made or rotated; twice while one replaces another.
             Better in PORTICO_WEBHOOK_SECRET, where no list of processes shows it; several with commas between them
  --port     where to listen; 4000, 0 takes any that is free
  --host     127.0.0.1; 0.0.0.0 listens everywhere
  --status   what to answer to a genuine delivery; 204. 500 or 410 show what Portico does when a receiver fails

What is not genuine is answered 400 and shown with the reason.`

/** Told in a sentence, without a stack: the person who runs the command can mend it. */
class UsageError extends Error {}

async function main(): Promise<void> {
  const values = parsed()
  if (values.help) {
    process.stdout.write(`${usage}\n`)
    return
  }
  const secrets = values.secret ?? (process.env['PORTICO_WEBHOOK_SECRET'] ?? '').split(',').map((one) => one.trim())
  if (secrets.includes('')) throw new UsageError(`A secret is needed: --secret or PORTICO_WEBHOOK_SECRET.\n\n${usage}`)
  const hasColours = process.stdout.isTTY === true && !process.env['NO_COLOR']
  const catcher = await startCatcher({
    host: values.host,
    port: integer('port', values.port, 0, 65_535),
    secrets,
    status: integer('status', values.status, 200, 599),
    onDelivery: (delivery) => void process.stdout.write(`${reportOf(delivery, hasColours)}\n`),
  })
  const stop = () => void catcher.close()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  process.stdout.write(`Listening at ${catcher.url}\n\n`)
}

function parsed() {
  try {
    const { values } = parseArgs({
      options: {
        secret: { type: 'string', multiple: true },
        port: { type: 'string', default: '4000' },
        host: { type: 'string', default: '127.0.0.1' },
        status: { type: 'string', default: '204' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    return values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

function integer(name: string, text: string, from: number, to: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= from && value <= to)) throw new UsageError(`--${name} takes an integer from ${from} to ${to}.`)
  return value
}

main().catch((error: Error & { code?: string }) => {
  const isInUse = error.code === 'EADDRINUSE'
  const known =
    error instanceof UsageError ? error.message : isInUse ? 'Something else listens there: --port.' : undefined
  process.stderr.write(`${known ?? error.stack}\n`)
  process.exitCode = 1
})
