import { chmod, chown, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { describeDatabaseServer } from './conformance.ts'
import { ask } from './embedded/session.ts'
import { isRoot, run, until, Workshop } from './embedded/testing.ts'
import { connectExternal } from './external.ts'
import { type ConnectionSettings, type DatabaseServer, DatabaseServerError } from './port.ts'

const workshop = new Workshop()
const hasOpenSsl = await run('openssl', ['version']).then(
  () => true,
  () => false,
)
afterAll(() => workshop.close())

const socketUrl = ({ user, password, host, database }: ConnectionSettings) =>
  `postgres://${user}:${password}@/${database}?host=${encodeURIComponent(host)}`
const tcpUrl = ({ user, password, host, port, database }: ConnectionSettings) =>
  `postgresql://${user}:${password}@${host}:${port}/${database}`

describeDatabaseServer('embedded, on a Unix socket,', async () => workshop.start(await workshop.newPath()))
describeDatabaseServer('embedded, over TCP as on Windows,', async () =>
  workshop.start(await workshop.newPath(), { surroundings: { unixSockets: false } }),
)
describeDatabaseServer('external, on a Unix socket,', async () => {
  const theirs = await workshop.start(await workshop.newData())
  return connectExternal({ url: socketUrl(theirs.connection) })
})
describeDatabaseServer('external, over TCP,', async () => {
  const theirs = await workshop.start(await workshop.newData(), { surroundings: { unixSockets: false } })
  return connectExternal({ url: tcpUrl(theirs.connection) })
})

describe('external', () => {
  let theirs: DatabaseServer | undefined
  const open = async () => {
    theirs ??= await workshop.start(await workshop.newData(), { surroundings: { unixSockets: false } })
    return theirs.connection
  }
  const refusal = (url: string, withinMs = 10_000) =>
    connectExternal({ url, withinMs }).then(
      () => 'no refusal',
      (error: unknown) => (error instanceof DatabaseServerError ? error.message : `wrong error: ${error}`),
    )

  it('leaves the server running when it stops', async () => {
    const connection = await open()
    const server = await connectExternal({ url: tcpUrl(connection) })
    await server.stop()
    expect(await ask(connection, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('refuses a wrong password and a missing database at once, without telling the password', async () => {
    const connection = await open()
    const start = Date.now()
    const wrong = await refusal(tcpUrl({ ...connection, password: 'open-sesame' }))
    expect(wrong).toContain('refuses the connection: password authentication failed')
    expect(wrong).toContain(`portico at 127.0.0.1:${connection.port}/portico`)
    expect(wrong).not.toContain('open-sesame')
    expect(await refusal(tcpUrl({ ...connection, database: 'nowhere' }))).toContain('"nowhere" does not exist')
    expect(Date.now() - start).toBeLessThan(5_000)
  })

  it('says what a URL must look like, without repeating it', async () => {
    for (const url of [
      '',
      'mysql://a:geheim@b/c',
      'postgres://a:geheim@b:99999/c',
      'postgres://a:geheim@b/c?port=x',
      'x',
    ]) {
      const said = await refusal(url)
      expect(said).toContain('it must look like postgres://')
      expect(said).not.toContain('geheim')
    }
  })

  it('waits for a server that comes up late', async () => {
    const port = (await open()).port
    const { port: gatePort, openGate, close } = await makeGate(port)
    const connecting = connectExternal({ url: tcpUrl({ ...(await open()), port: gatePort }) })
    await pause(700)
    await openGate()
    expect((await connecting).connection.port).toBe(gatePort)
    close()
  })

  it('gives up on a server that does not answer, and names it', async () => {
    const { port } = await makeGate(1)
    const said = await refusal(`postgres://ann:geheim@127.0.0.1:${port}/shop`, 300)
    expect(said).toContain(`ann at 127.0.0.1:${port}/shop`)
    expect(said).toMatch(/does not answer: .*ECONNREFUSED/)
    expect(said).not.toContain('geheim')
  })

  it('gives up on a server that takes the connection and then says nothing', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    const port = await portOf(silent)
    expect(await refusal(`postgres://ann@127.0.0.1:${port}/shop`, 400)).toContain('does not answer')
    silent.close()
  })

  it('insists on TLS when the URL does, and does without when the URL says "prefer"', async () => {
    const url = tcpUrl(await open())
    expect(await refusal(`${url}?sslmode=require`)).toContain('The server does not support SSL connections')
    expect((await connectExternal({ url: `${url}?sslmode=prefer` })).connection.ssl).toBe(false)
    expect(await refusal(`${url}?sslmode=verify-full&sslrootcert=/nowhere.pem`)).toContain('/nowhere.pem')
  })

  it.runIf(hasOpenSsl)('encrypts, and checks the certificate when the URL asks for it', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir, { surroundings: { unixSockets: false } })
    const certificate = await enableTls(join(dataDir, 'postgres'), server.connection)
    const url = tcpUrl(server.connection)
    const isEncrypted = async (query: string) => {
      const { connection } = await connectExternal({ url: `${url}?${query}` })
      const [row] = await ask(connection, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
      return row?.['ssl']
    }
    expect(await isEncrypted('sslmode=disable')).toBe(false)
    expect(await isEncrypted('sslmode=prefer')).toBe(true)
    expect(await isEncrypted('sslmode=require')).toBe(true)
    expect(await isEncrypted('sslmode=no-verify')).toBe(true)
    expect(await isEncrypted(`sslmode=verify-full&sslrootcert=${certificate}`)).toBe(true)
    const start = Date.now()
    expect(await refusal(`${url}?sslmode=verify-full`)).toContain('refuses the connection: self-signed certificate')
    expect(Date.now() - start).toBeLessThan(5_000)
  })

  it('refuses PostgreSQL 14, a database in another encoding, and a replica', async () => {
    const answer = { version: '150004', name: '15.4', encoding: 'UTF8', replica: 'false' }
    const said = async (change: Partial<typeof answer>) => {
      const { port, close } = await imitateServer({ ...answer, ...change })
      const message = await refusal(`postgres://ann@127.0.0.1:${port}/shop`)
      close()
      return message
    }
    expect(await said({})).toBe('no refusal')
    expect(await said({ version: '140011', name: '14.11' })).toContain(
      'is PostgreSQL 14.11; Portico needs PostgreSQL 15',
    )
    expect(await said({ encoding: 'LATIN1' })).toContain('has the encoding LATIN1')
    expect(await said({ replica: 'true' })).toContain('read-only replica')
  })
})

/** Gives a running server a certificate of its own making, and returns its path. */
async function enableTls(clusterDir: string, connection: ConnectionSettings): Promise<string> {
  const { uid, gid } = await stat(clusterDir)
  const [key, certificate] = [join(clusterDir, 'server.key'), join(clusterDir, 'server.crt')]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  await run('openssl', ['req', ...kind, '-keyout', key, '-out', certificate, ...subject])
  if (isRoot) for (const file of [key, certificate]) await chown(file, uid, gid)
  await chmod(key, 0o600)
  await ask(connection, 'ALTER SYSTEM SET ssl = on')
  await ask(connection, 'SELECT pg_reload_conf()')
  await until(async () => (await ask(connection, 'SHOW ssl'))[0]?.['ssl'] === 'on')
  return certificate
}

async function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** A port where nobody listens until the gate is opened; then it leads to the server. */
async function makeGate(serverPort: number) {
  const finder = createServer().listen(0, '127.0.0.1')
  const port = await portOf(finder)
  await new Promise((resolve) => finder.close(resolve))
  const gate = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1')
    client.pipe(server).pipe(client)
    for (const end of [client, server]) end.on('error', () => {})
  })
  const openGate = () => new Promise<void>((resolve) => gate.listen(port, '127.0.0.1', resolve))
  return { port, openGate, close: () => gate.close() }
}

/** Speaks just enough of the protocol to give one answer: an old PostgreSQL is not to be had here. */
async function imitateServer(row: Record<string, string>) {
  const message = (type: string, ...parts: (string | Buffer)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
    const length = Buffer.alloc(4)
    length.writeInt32BE(body.length + 4)
    return Buffer.concat([Buffer.from(type), length, body])
  }
  const int16 = (n: number) => Buffer.from([n >> 8, n & 255])
  const int32 = (n: number) => Buffer.concat([int16(n >> 16), int16(n & 0xffff)])
  const field = (name: string) =>
    Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)])
  const value = (text: string) => Buffer.concat([int32(text.length), Buffer.from(text)])
  const ready = message('Z', 'I')
  const columns = Object.entries(row)
  const answer = Buffer.concat([
    message('T', int16(columns.length), ...columns.map(([name]) => field(name))),
    message('D', int16(columns.length), ...columns.map(([, text]) => value(text))),
    message('C', 'SELECT 1\0'),
    ready,
  ])
  const server = createServer((client) => {
    client.on('error', () => {})
    client.once('data', () => client.write(Buffer.concat([message('R', int32(0)), ready])))
    client.on('data', (data) => data[0] === 'Q'.charCodeAt(0) && client.write(answer))
  }).listen(0, '127.0.0.1')
  return { port: await portOf(server), close: () => server.close() }
}
