/**
 * A service in a process of its own, for tests that kill it. Its argument is JSON: the data directory and the
 * surroundings to replace. It tells what happens as lines of JSON, and stops in order on SIGINT and SIGTERM.
 */
import { startEmbedded } from '../embedded.ts'
import type { ConnectionSettings } from '../port.ts'
import { ask } from './session.ts'
import { thisMachine } from './surroundings.ts'

export type ServiceEvent =
  | { readonly event: 'report'; readonly sentence: string }
  | { readonly event: 'ready'; readonly connection: ConnectionSettings; readonly versionNumber: number }
  | { readonly event: 'refused'; readonly name: string; readonly message: string }
  | { readonly event: 'signalled'; readonly databaseAnswers: boolean }
  | { readonly event: 'stopped' }

const tell = (event: ServiceEvent) => process.stdout.write(`${JSON.stringify(event)}\n`)
const { dataDir, surroundings } = JSON.parse(process.argv[2] ?? '{}')

try {
  const server = await startEmbedded(
    { dataDir, report: (sentence) => tell({ event: 'report', sentence }) },
    { ...thisMachine(), ...surroundings },
  )
  const stop = async () => {
    // Ctrl-C must not have reached PostgreSQL: the service still has work to finish with it.
    const databaseAnswers = await ask(server.connection, 'SELECT 1').then(
      () => true,
      () => false,
    )
    tell({ event: 'signalled', databaseAnswers })
    await server.stop()
    tell({ event: 'stopped' })
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  setInterval(() => {}, 60_000) // a real service listens to HTTP
  tell({ event: 'ready', connection: server.connection, versionNumber: server.versionNumber })
} catch (error) {
  const { name, message } = error instanceof Error ? error : { name: 'unknown', message: String(error) }
  tell({ event: 'refused', name, message })
  process.exitCode = 1
}
