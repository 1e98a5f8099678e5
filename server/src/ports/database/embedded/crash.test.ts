import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { findBinaries } from './binaries.ts'
import { adoptPostmaster, shutDown } from './postmaster.ts'
import { findPostgresOn, isRunning, signal } from './processes.ts'
import { ask } from './session.ts'
import { thisMachine } from './surroundings.ts'
import { isRoot, messageOf, one, recordingLog, serverOn, until, Workshop } from './testing.ts'

const workshop = new Workshop()
afterAll(() => workshop.close())

const leaveRunning = async (dataDir: string, surroundings = {}) => {
  const service = workshop.service(dataDir, { surroundings })
  const ready = await service.event('ready')
  service.kill()
  await service.exited
  const pid = await serverOn(dataDir)
  expect(isRunning(pid)).toBe(true)
  return { pid, connection: ready.connection }
}

describe('a PostgreSQL left running by a service that was killed', () => {
  it('is taken over, and ended by stop() like one of our own', async () => {
    const dataDir = await workshop.newData()
    const left = await leaveRunning(dataDir)
    const sentences: string[] = []
    const server = await workshop.start(dataDir, { report: (sentence) => sentences.push(sentence) })
    expect(sentences).toEqual([expect.stringContaining('Taking over')])
    expect(await serverOn(dataDir)).toBe(left.pid)
    expect(server.connection).toEqual(left.connection)
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
    expect(isRunning(left.pid)).toBe(false)
    expect(await findPostgresOn(join(dataDir, 'postgres'))).toEqual([])
  })

  it('is watched after it was taken over: when it dies, it is started again', async () => {
    const dataDir = await workshop.newData()
    const { pid } = await leaveRunning(dataDir)
    const server = await workshop.start(dataDir)
    signal(pid, 'SIGKILL')
    await until(async () => (await messageOf(one(server))) === 'no error' && (await serverOn(dataDir)) !== pid)
    await server.stop()
  })

  it('is restarted when it runs with other settings', async () => {
    const dataDir = await workshop.newData()
    const { pid } = await leaveRunning(dataDir, { memoryBytes: 2 ** 28 })
    const server = await workshop.start(dataDir, { surroundings: { memoryBytes: 2 ** 30 } })
    expect(isRunning(pid)).toBe(false)
    expect(await ask(server.connection, 'SHOW shared_buffers')).toEqual([{ shared_buffers: '256MB' }])
    await server.stop()
  })

  it('is killed when it does not answer', async () => {
    const dataDir = await workshop.newData()
    const { pid } = await leaveRunning(dataDir)
    signal(pid, 'SIGSTOP')
    const log = recordingLog()
    const server = await workshop.start(dataDir, { log })
    expect(isRunning(pid)).toBe(false)
    expect(log.lines.join()).toContain('does not serve us')
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
  })
})

describe('what a power cut leaves behind', () => {
  /** A program of the same user that happens to have the process id of the PostgreSQL from before. */
  const bystander = (owner: { uid: number; gid: number }) =>
    spawn('sleep', ['60'], { stdio: 'ignore', ...(isRoot && { uid: owner.uid, gid: owner.gid }) })

  it('does not harm a program that now has the process id in postmaster.pid, and starts', async () => {
    const dataDir = await workshop.newData()
    const clusterDir = join(dataDir, 'postgres')
    const { uid, gid } = await stat(clusterDir)
    const sleeper = bystander({ uid, gid })
    const lines = [sleeper.pid, clusterDir, 1, 5432, clusterDir, '', '  1 1', 'ready']
    await writeFile(join(clusterDir, 'postmaster.pid'), `${lines.join('\n')}\n`)
    await writeFile(join(clusterDir, '.s.PGSQL.5432.lock'), `${lines.slice(0, 5).join('\n')}\n`)
    await writeFile(join(clusterDir, '.s.PGSQL.5432'), '')
    const server = await workshop.start(dataDir)
    expect(await one(server)).toEqual([{ one: 1 }])
    expect(sleeper.exitCode ?? sleeper.signalCode).toBeNull()
    sleeper.kill()
    await server.stop()
  })

  it.each(['', 'rubbish\n'])('starts over a postmaster.pid that holds %j', async (content) => {
    const dataDir = await workshop.newData()
    await writeFile(join(dataDir, 'postgres', 'postmaster.pid'), content)
    const server = await workshop.start(dataDir)
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
  })

  it('starts over the id of a process that is gone, and over a socket that nobody listens to', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir)
    await ask(server.connection, 'CREATE TABLE acknowledged AS SELECT 1 AS it')
    const pid = await serverOn(dataDir)
    const before = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')
    await server.stop()
    await writeFile(join(dataDir, 'postgres', 'postmaster.pid'), before)
    await writeFile(join(dataDir, 'postgres', '.s.PGSQL.5432.lock'), before)
    const again = await workshop.start(dataDir)
    expect(await serverOn(dataDir)).not.toBe(pid)
    expect(await ask(again.connection, 'SELECT it FROM acknowledged')).toEqual([{ it: 1 }])
    await again.stop()
  })

  it('sets a new password when the file with it is lost, and says what to do when it is wrong', async () => {
    const dataDir = await workshop.newData()
    const passwordFile = join(dataDir, 'postgres.password')
    await writeFile(passwordFile, 'not the one\n')
    expect(await messageOf(workshop.start(dataDir))).toMatch(/does not open the database. Delete that file/)
    expect(await serverOn(dataDir)).toBe(0)
    await rm(passwordFile)
    const server = await workshop.start(dataDir)
    expect(await one(server)).toEqual([{ one: 1 }])
    expect((await stat(passwordFile)).mode & 0o777).toBe(0o600)
    await server.stop()
  })
})

describe('a PostgreSQL that ends while the service runs', () => {
  it('starts PostgreSQL again when it is killed in the middle of a computation, at the same address', async () => {
    const dataDir = await workshop.newData()
    const log = recordingLog()
    const server = await workshop.start(dataDir, { log })
    await ask(server.connection, 'CREATE TABLE acknowledged AS SELECT 1 AS it')
    const client = new pg.Client(server.connection)
    client.on('error', () => {})
    await client.connect()
    // A backend that computes does not notice that its postmaster is gone, and keeps the shared memory.
    const computing = messageOf(client.query('SELECT count(*) FROM generate_series(1, 1e12)'))
    await pause(100)
    signal(await serverOn(dataDir), 'SIGKILL')
    await until(async () => (await messageOf(one(server))) === 'no error')
    expect(await ask(server.connection, 'SELECT it FROM acknowledged')).toEqual([{ it: 1 }])
    expect(await computing).not.toBe('no error')
    expect(log.lines.join('\n')).toMatch(
      /PostgreSQL ended; starting it again .*SIGKILL[\s\S]*PostgreSQL is running again/,
    )
    await server.stop()
    expect(await findPostgresOn(join(dataDir, 'postgres'))).toEqual([])
  })

  it('starts it again every time, and can be stopped in between', async () => {
    const dataDir = await workshop.newData()
    const server = await workshop.start(dataDir)
    for (let n = 0; n < 3; n++) {
      const pid = await serverOn(dataDir)
      signal(pid, 'SIGQUIT')
      await until(async () => (await messageOf(one(server))) === 'no error' && (await serverOn(dataDir)) !== pid)
    }
    signal(await serverOn(dataDir), 'SIGKILL')
    await pause(30)
    await server.stop()
    expect(await findPostgresOn(join(dataDir, 'postgres'))).toEqual([])
  })

  it('goes on trying when it cannot be started for a while', async () => {
    const dataDir = await workshop.newData()
    const log = recordingLog()
    const server = await workshop.start(dataDir, { log })
    const control = join(dataDir, 'postgres', 'global', 'pg_control')
    const content = await readFile(control)
    await rm(control)
    signal(await serverOn(dataDir), 'SIGKILL')
    await until(() => log.lines.filter((line) => line.includes('could not be started again')).length >= 2)
    expect(log.lines.join()).toContain('pg_control')
    await writeFile(control, content)
    const { uid, gid } = await stat(join(dataDir, 'postgres'))
    execFileSync('chown', [`${uid}:${gid}`, control])
    await until(async () => (await messageOf(one(server))) === 'no error')
    await server.stop()
  })

  it('is ended with growing insistence when it does not end by itself', async () => {
    const dataDir = await workshop.newData()
    const { pid } = await leaveRunning(dataDir)
    signal(pid, 'SIGSTOP')
    const binaries = await findBinaries({ dir: dataDir }, thisMachine(), () => {})
    const steps = [
      { signal: 'SIGINT', patienceMs: 200 },
      { signal: 'SIGQUIT', patienceMs: 200 },
      { signal: 'SIGKILL', patienceMs: 5_000 },
    ] as const
    const clusterDir = join(dataDir, 'postgres')
    expect(await shutDown(adoptPostmaster(pid), clusterDir, binaries, steps.slice(0, 2))).toBe(false)
    expect(isRunning(pid)).toBe(true)
    expect(await shutDown(adoptPostmaster(pid), clusterDir, binaries, steps)).toBe(true)
    expect(await findPostgresOn(clusterDir)).toEqual([])
  })
})
