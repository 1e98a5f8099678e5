import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { isRunning, signal } from './embedded/processes.ts'
import { ask } from './embedded/session.ts'
import { serverArguments } from './embedded/settings.ts'
import { messageOf, one, type Service, serverOn, until, Workshop } from './embedded/testing.ts'

const workshop = new Workshop()
afterAll(() => workshop.close())

describe('the first start', () => {
  it('makes a database with a password of its own that only the owner can read, and keeps it', async () => {
    const dataDir = await workshop.newPath()
    const sentences: string[] = []
    const server = await workshop.start(dataDir, { report: (sentence) => sentences.push(sentence) })
    expect(sentences).toEqual([
      expect.stringContaining('Preparing PostgreSQL 18.'),
      expect.stringContaining('Starting'),
    ])
    await ask(server.connection, `CREATE TABLE kept AS SELECT 'value' AS it`)
    await server.stop()
    const password = join(dataDir, 'postgres.password')
    expect((await stat(password)).mode & 0o777).toBe(0o600)
    expect((await readFile(password, 'utf8')).trim()).toMatch(/^[\w-]{43}$/)

    sentences.length = 0
    const again = await workshop.start(dataDir, { report: (sentence) => sentences.push(sentence) })
    expect(sentences).toEqual([expect.stringContaining('Starting')])
    expect(again.connection).toEqual(server.connection)
    expect(await ask(again.connection, 'SELECT it FROM kept')).toEqual([{ it: 'value' }])
    await again.stop()
  })

  it('leaves nothing half-made when it is killed, at whatever moment', async () => {
    const dataDir = await workshop.newPath()
    for (const delayMs of [20, 150, 300]) {
      const service = workshop.service(dataDir)
      await until(() => service.sentences().some((sentence) => sentence.startsWith('Preparing')))
      await pause(delayMs)
      service.kill()
      await service.exited
      expect(await readdir(dataDir)).not.toContain('postgres')
    }
    expect((await readdir(dataDir)).join()).toContain('postgres.init-')
    const server = await workshop.start(dataDir)
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
    expect((await readdir(dataDir)).filter((name) => name.startsWith('postgres.init-'))).toEqual([])
  })
})

describe('one service for one data directory', () => {
  it('lets exactly one of five simultaneous starts win, and tells the others its process id', async () => {
    const dataDir = await workshop.newData()
    const services = Array.from({ length: 5 }, () => workshop.service(dataDir))
    const isDecided = (service: Service) => service.events.some(({ event }) => event === 'ready' || event === 'refused')
    await until(() => services.every(isDecided))
    const winners = services.filter((service) => service.events.some(({ event }) => event === 'ready'))
    expect(winners).toHaveLength(1)
    for (const loser of services.filter((service) => !winners.includes(service))) {
      const { name, message } = await loser.event('refused')
      expect(name).toBe('DatabaseServerError')
      expect(message).toContain(`Process ${winners[0]?.pid} is using the data directory ${dataDir}`)
      expect(message).toContain('PORTICO_DATA_DIR')
    }
    await winners[0]?.stop()
  })

  it('refuses a second start in the same process, and lets the next one in after stop()', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir)
    for (let n = 0; n < 2; n++) {
      expect(await messageOf(workshop.start(dataDir))).toContain(`Process ${process.pid} is using`)
    }
    expect(await one(server)).toEqual([{ one: 1 }])
    const elsewhere = workshop.service(dataDir) // a refused start must not have given the lock back
    expect((await elsewhere.event('refused')).message).toContain(`Process ${process.pid} is using`)
    await server.stop()
    await (await workshop.start(dataDir)).stop()
  })

  it('gives the lock back when a start fails', async () => {
    const dataDir = await workshop.newData()
    await rm(join(dataDir, 'postgres', 'PG_VERSION'))
    for (let n = 0; n < 2; n++)
      expect(await messageOf(workshop.start(dataDir))).toContain('is not a PostgreSQL cluster')
  })
})

describe('while the service runs', () => {
  it('keeps PostgreSQL away from Ctrl-C: the service gets the signal and ends it in order', async () => {
    const dataDir = await workshop.newData()
    const service = workshop.service(dataDir)
    await service.event('ready')
    const pid = await serverOn(dataDir)
    process.kill(-service.pid, 'SIGINT') // the whole process group, as a terminal does
    expect((await service.event('signalled')).databaseAnswers).toBe(true)
    await service.event('stopped')
    await service.exited
    expect(isRunning(pid)).toBe(false)
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toMatch(/database system is shut down\n$/)
  })

  it('stops within seconds although a session is open in a transaction', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir)
    const client = new pg.Client(server.connection)
    client.on('error', () => {})
    await client.connect()
    await client.query('BEGIN')
    const start = Date.now()
    await Promise.all([server.stop(), server.stop()])
    expect(Date.now() - start).toBeLessThan(9_000) // fast shutdown, without escalation
    expect(await serverOn(dataDir)).toBe(0)
    await client.end().catch(() => {})
  })

  it.runIf(process.platform === 'linux')(
    'does not show the secrets of its environment to PostgreSQL, nor follow its settings there',
    async () => {
      const dataDir = await workshop.newData()
      const service = workshop.service(dataDir, {
        env: {
          PORTICO_MASTER_KEY: 'top-secret',
          PGDATA: '/nowhere',
          PGSSLMODE: 'require',
          PGPORT: '1',
          PGHOST: 'nowhere',
        },
      })
      await service.event('ready')
      const pid = await serverOn(dataDir)
      const shown = await readFile(`/proc/${pid}/environ`, 'utf8')
      expect(shown).toContain('LC_ALL=C')
      expect(shown).not.toContain('top-secret')
      await service.stop()
    },
  )

  it('keeps customers’ values out of the log file, and the file bounded', async () => {
    const dataDir = await workshop.newData()
    const logFile = join(dataDir, 'postgres.log')
    await writeFile(logFile, 'x'.repeat(11 * 1024 * 1024))
    const server = await workshop.start(dataDir)
    expect((await stat(`${logFile}.1`)).size).toBe(11 * 1024 * 1024)
    await ask(server.connection, 'CREATE TABLE t (email text UNIQUE)')
    const insert = () => ask(server.connection, `INSERT INTO t VALUES ('ann@canary.example')`)
    await insert()
    expect(await messageOf(insert())).toContain('duplicate key')
    await server.stop()
    const logged = await readFile(logFile, 'utf8')
    expect(logged).toContain('ready to accept connections')
    expect(logged).not.toContain('canary')
    expect(logged.length).toBeLessThan(10_000)
  })
})

describe('what it runs on', () => {
  it.each([
    ['19', /is of PostgreSQL 19; this Portico brings PostgreSQL 18. Start the newer Portico/],
    ['17', /is of PostgreSQL 17; this Portico brings PostgreSQL 18. Start the older Portico once more.*pg_dump/],
  ])('refuses a database of PostgreSQL %s and says what to do', async (major, message) => {
    const dataDir = await workshop.newData()
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), `${major}\n`)
    expect(await messageOf(workshop.start(dataDir))).toMatch(message)
  })

  it('puts the socket into a private temporary folder when the path of the data directory is too long for it', async () => {
    const dataDir = join(await workshop.newPath(), 'x'.repeat(60), 'y'.repeat(60))
    const server = await workshop.start(dataDir)
    const { host } = server.connection
    expect(host).not.toContain('x'.repeat(60))
    const folder = await stat(host)
    expect(folder.mode & 0o777).toBe(0o700)
    expect(folder.uid).toBe((await stat(join(dataDir, 'postgres'))).uid)
    await rm(host, { recursive: true }) // as a cleaner of temporary folders may
    signal(await serverOn(dataDir), 'SIGKILL')
    await until(async () => (await messageOf(one(server))) === 'no error')
    await server.stop()
    const again = await workshop.start(dataDir)
    expect(again.connection.host).toBe(host)
    await again.stop()
    await rm(host, { recursive: true })
  })

  it('serves nobody but the owner: the folder of the socket is closed, and no port is open', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir)
    expect((await stat(server.connection.host)).mode & 0o077).toBe(0)
    expect((await ask(server.connection, 'SHOW listen_addresses'))[0]).toEqual({ listen_addresses: '' })
    await server.stop()
  })

  it('takes a quarter of a small memory, an eighth of a large one and never more than 2 GB', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir, { surroundings: { memoryBytes: 2 ** 28 } })
    expect(await ask(server.connection, 'SHOW shared_buffers')).toEqual([{ shared_buffers: '64MB' }])
    await server.stop()
    const sharedOf = (memoryBytes: number) =>
      serverArguments(dataDir, server.connection, memoryBytes).find((one) => one.startsWith('shared_buffers='))
    expect([2 ** 24, 2 ** 30, 2 ** 31, 2 ** 33, 2 ** 36].map(sharedOf)).toEqual(
      ['16MB', '256MB', '256MB', '1024MB', '2048MB'].map((size) => `shared_buffers=${size}`),
    )
  })

  it('works in a folder whose name needs quoting', async () => {
    const dataDir = join(await workshop.newPath(), `a "b", c' $d`)
    const server = await workshop.start(dataDir)
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
  })
})
