import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { ClientOptions } from './client.ts'

export const usage = `Loads the Debian package index of this machine into Portico, then asks five questions of it.

  npm run example:debian -- [options]

  --file <Packages>      read this file instead of \`apt-cache dumpavail\`
  --demo <demo.json>     where base URL, application and token come from
                         (default: demo.json under PORTICO_DATA_DIR, or under ./data)
  --base-url, --app, --token
                         instead of demo.json, or of parts of it; --app takes a key or an id
  --state <file>         where the position of the load is kept (default: beside demo.json)
  --batch-size <n>       records in one request, 1 to 200 (default 200)
  --in-flight <n>        requests at the same time (default 4)
  --reload               load again what was loaded before
  --phrase <text>, --words <text>
                         what to look for in descriptions, and in summaries`

/** Told without a stack: the reader can mend it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface Options {
  readonly file: string | undefined
  readonly api: ClientOptions
  readonly appKey: string
  readonly statePath: string
  readonly batchSize: number
  readonly inFlight: number
  readonly reload: boolean
  readonly phrase: string
  readonly words: string
}

export async function readOptions(args: readonly string[]): Promise<Options> {
  const values = parse(args)
  const demoPath = resolve(values.demo ?? join(process.env['PORTICO_DATA_DIR'] ?? 'data', 'demo.json'))
  const whole = values['base-url'] && values.app && values.token
  const demo = whole ? undefined : await readDemo(demoPath)
  const app = values.app ?? 'acme-crm'
  const found = demo?.apps.find((one) => one.appKey === app || one.saasAppId === app)
  if (demo && !found) throw new UsageError(`${demoPath} has no application ${app}. Name one of it with --app.`)
  return {
    file: values.file,
    api: {
      baseUrl: (values['base-url'] ?? demo?.baseUrl ?? '').replace(/\/$/, ''),
      saasAppId: found?.saasAppId ?? app,
      token: values.token ?? found?.organizations[0]?.credentials.live ?? '',
    },
    appKey: found?.appKey ?? app,
    statePath: resolve(values.state ?? join(dirname(demoPath), 'debian-catalogue.json')),
    batchSize: integer('--batch-size', values['batch-size'], 1, 200),
    inFlight: integer('--in-flight', values['in-flight'], 1, 64),
    reload: values.reload,
    phrase: values.phrase,
    words: values.words,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        file: { type: 'string' },
        demo: { type: 'string' },
        'base-url': { type: 'string' },
        app: { type: 'string' },
        token: { type: 'string' },
        state: { type: 'string' },
        'batch-size': { type: 'string', default: '200' },
        'in-flight': { type: 'string', default: '4' },
        reload: { type: 'boolean', default: false },
        phrase: { type: 'string', default: 'command line' },
        words: { type: 'string', default: 'text editor' },
      },
    }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

function integer(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most)) throw new UsageError(`${name} takes an integer from ${least} to ${most}.`)
  return value
}

/** The part of demo.json that a client of records needs. */
interface Demo {
  readonly baseUrl: string
  readonly apps: readonly {
    readonly saasAppId: string
    readonly appKey: string
    readonly organizations: readonly { readonly credentials: { readonly live: string } }[]
  }[]
}

async function readDemo(path: string): Promise<Demo> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    const reason = (error as Error).message
    throw new UsageError(
      `${path} cannot be read (${reason}). Start the service first (npm start), or name it with --base-url, --app and --token.`,
    )
  }
}
