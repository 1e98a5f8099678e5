import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { ConnectionSettings } from '../../src/ports/database/port.ts'

export interface SeverableConnection {
  readonly connection: ConnectionSettings
  /** Cuts every connection and refuses new ones. */
  cut(): Promise<void>
  /** Takes connections again, at the same address. */
  restore(): Promise<void>
}

/** A way to a database that a test can cut, so that the server itself may go on serving other tests. */
export async function makeSeverable(target: ConnectionSettings): Promise<SeverableConnection> {
  const open = new Set<Socket>()
  const server = createServer((near) => {
    const far = target.host.startsWith('/')
      ? createConnection(join(target.host, `.s.PGSQL.${target.port}`))
      : createConnection(target.port, target.host)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)
  return {
    connection: { ...target, host: '127.0.0.1', port },
    async cut() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
    async restore() {
      await listen(port)
    },
  }
}
