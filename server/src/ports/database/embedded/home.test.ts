import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type Account, findUnprivilegedAccount, mayReach, ownerOf } from './account.ts'
import { ask } from './session.ts'
import { thisMachine } from './surroundings.ts'
import { isRoot, messageOf, one, run, serverOn, Workshop } from './testing.ts'

const workshop = new Workshop()
afterAll(() => workshop.close())

const passwd = (...lines: string[]) => `root:x:0:0:root:/root:/bin/sh\n${lines.join('\n')}\n`
const nobodyLine = 'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin'
const nobody: Account = { name: 'nobody', uid: 65534, gid: 65534 }

async function passwdFile(...lines: string[]): Promise<string> {
  const file = await workshop.newPath()
  await writeFile(file, passwd(...lines))
  return file
}

/** Who runs the server on this data directory. */
const runnerOf = async (dataDir: string) => (await stat(`/proc/${await serverOn(dataDir)}`)).uid

describe('the account', () => {
  it('is postgres, else nobody, never root', async () => {
    const postgresLine = 'postgres:x:70:70::/var/lib/postgresql:/bin/sh'
    const both = await passwdFile(nobodyLine, postgresLine)
    expect(await findUnprivilegedAccount(both)).toEqual({ name: 'postgres', uid: 70, gid: 70 })
    expect(await findUnprivilegedAccount(await passwdFile(nobodyLine))).toEqual(nobody)
    expect(await findUnprivilegedAccount(await passwdFile('postgres:x:0:0:::', nobodyLine))).toEqual(nobody)
    expect(await findUnprivilegedAccount(await passwdFile('daemon:x:1:1:::'))).toBeUndefined()
    expect(await findUnprivilegedAccount('/no/such/file')).toBeUndefined()
  })

  it('may reach a folder only when every folder above lets it through', async () => {
    const outer = await workshop.newPath()
    const inner = join(outer, 'a', 'b')
    await mkdir(inner, { recursive: true })
    expect(await mayReach(nobody, inner)).toBe(true)
    const { uid, gid } = await stat(outer)
    await chmod(outer, 0o700)
    expect(await mayReach(nobody, inner)).toBe(false)
    expect(await mayReach({ name: 'me', uid, gid }, inner)).toBe(true)
    await chmod(outer, 0o710)
    expect(await mayReach({ ...nobody, gid }, inner)).toBe(true)
    await chmod(outer, 0o701)
    expect(await mayReach({ ...nobody, gid }, inner)).toBe(false) // the group's bits count for its members
  })
})

describe.runIf(isRoot && process.platform === 'linux')('a service that runs as root', () => {
  it('runs PostgreSQL as the account, in folders that only root and the account can pass through', async () => {
    const dataDir = join(await workshop.newPath(), 'deep', 'data')
    const server = await workshop.start(dataDir, { surroundings: { passwdFile: await passwdFile(nobodyLine) } })
    expect(await runnerOf(dataDir)).toBe(nobody.uid)
    for (const folder of [dataDir, dirname(dataDir), dirname(dirname(dataDir))]) {
      const { uid, gid, mode } = await stat(folder)
      expect([uid, gid, mode & 0o777]).toEqual([0, nobody.gid, 0o710])
    }
    await server.stop()
  })

  it('keeps the account that owns the cluster, whatever accounts have come since', async () => {
    const dataDir = await workshop.newPath()
    const server = await workshop.start(dataDir, { surroundings: { passwdFile: await passwdFile(nobodyLine) } })
    await server.stop()
    const later = await workshop.start(dataDir, {
      surroundings: { passwdFile: await passwdFile('postgres:x:101:104:::', nobodyLine) },
    })
    expect(await runnerOf(dataDir)).toBe(nobody.uid)
    await later.stop()
  })

  it('is told what to do where the machine has no account that would do', async () => {
    const start = workshop.start(await workshop.newPath(), { surroundings: { passwdFile: await passwdFile() } })
    expect(await messageOf(start)).toMatch(/^DatabaseServerError: .*refuses to run as root.*DATABASE_URL/)
  })

  it('never opens a folder of the user’s: the files go to a shared folder when the account cannot get in', async () => {
    const closed = await workshop.newPath()
    const dataDir = join(closed, 'data')
    await mkdir(dataDir, { recursive: true })
    await chmod(closed, 0o700)
    const sharedHome = await workshop.newPath()
    const sentences: string[] = []
    const surroundings = { sharedHome }
    const server = await workshop.start(dataDir, { surroundings, report: (sentence) => sentences.push(sentence) })
    expect(sentences[0]).toMatch(/^The user \w+ cannot enter .*: the database files go to /)
    const home = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim()
    expect(dirname(home)).toBe(sharedHome)
    expect((await stat(closed)).mode & 0o777).toBe(0o700)
    expect((await stat(dataDir)).mode & 0o777).toBe(0o755)
    expect((await stat(home)).mode & 0o777).toBe(0o710)
    expect(await readdir(dataDir)).not.toContain('postgres')
    await ask(server.connection, 'CREATE TABLE kept AS SELECT 1 AS it')
    await server.stop()

    await chmod(closed, 0o755) // now the account could get in; but the data is where it is
    const again = await workshop.start(dataDir, { surroundings })
    expect(await ask(again.connection, 'SELECT it FROM kept')).toEqual([{ it: 1 }])
    await again.stop()

    const copy = await workshop.newPath()
    await cp(dataDir, copy, { recursive: true })
    expect(await messageOf(workshop.start(copy, { surroundings }))).toContain(`${copy} is a copy of ${dataDir}`)
    await rm(copy, { recursive: true })
    await rename(dataDir, copy)
    const moved = await workshop.start(copy, { surroundings })
    expect(await ask(moved.connection, 'SELECT it FROM kept')).toEqual([{ it: 1 }])
    await moved.stop()

    await rename(join(home, 'postgres'), join(home, 'elsewhere'))
    expect(await messageOf(workshop.start(copy, { surroundings }))).toMatch(/are not there.*delete that file only to/)
  })

  it('copies the binaries when the account cannot reach them', async () => {
    const closed = await workshop.newPath()
    await mkdir(closed, { mode: 0o700 })
    await symlink(thisMachine().findBinaries(), join(closed, 'native'))
    const dataDir = await workshop.newPath()
    const sentences: string[] = []
    const start = () =>
      workshop.start(dataDir, {
        surroundings: { findBinaries: () => join(closed, 'native') },
        report: (sentence) => sentences.push(sentence),
      })
    await (await start()).stop()
    expect(sentences[0]).toMatch(/cannot run PostgreSQL from .*: copying it to /)
    const [version = ''] = await readdir(join(dataDir, 'postgres.binaries'))
    const copied = await lstat(join(dataDir, 'postgres.binaries', version, 'bin', 'postgres'))
    expect([copied.uid, copied.mode & 0o777]).toEqual([0, 0o755])
    sentences.length = 0
    const server = await start()
    expect(sentences.join()).not.toContain('copying')
    expect(await one(server)).toEqual([{ one: 1 }])
    await server.stop()
  })

  it('leaves a cluster that belongs to root to its owner', async () => {
    const dataDir = await workshop.newData()
    await run('chown', ['-R', '0:0', join(dataDir, 'postgres')])
    expect(await messageOf(workshop.start(dataDir))).toContain('belongs to root, and PostgreSQL refuses to run as root')
  })
})

/** Another user must be able to read this repository; below a closed folder (/root) it cannot be tested. */
const othersCanRead = isRoot && process.platform === 'linux' && (await mayReach(nobody, import.meta.dirname))

describe.runIf(othersCanRead)('a service that runs as an ordinary user', () => {
  it('makes, uses and stops its database without any rights, in folders that it keeps to itself', async () => {
    const parent = await workshop.newPath()
    await mkdir(parent)
    await chown(parent, nobody.uid, nobody.gid)
    const dataDir = join(parent, 'data')
    const service = workshop.service(dataDir, { uid: nobody.uid })
    const { connection } = await service.event('ready')
    expect(await ask(connection, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(await runnerOf(dataDir)).toBe(nobody.uid)
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700)
    await service.stop()
    await service.event('stopped')

    const asRoot = await workshop.start(dataDir) // sudo, for once
    expect(await runnerOf(dataDir)).toBe(nobody.uid)
    await asRoot.stop()
    const asBefore = workshop.service(dataDir, { uid: nobody.uid })
    await asBefore.event('ready')
    await asBefore.stop()
  })

  it('is told whose data directory it is when root started the service before', async () => {
    const dataDir = await workshop.newData()
    const service = workshop.service(dataDir, { uid: nobody.uid })
    const { name, message } = await service.event('refused')
    expect(name).toBe('DatabaseServerError')
    expect(message).toContain(`${dataDir} belongs to root and cannot be written by the user that runs Portico now`)

    await run('chown', [`${nobody.uid}`, dataDir]) // a half-hearted repair
    const next = workshop.service(dataDir, { uid: nobody.uid })
    expect((await next.event('refused')).message).toMatch(/service.lock/)
  })

  it('is told what to do when its user id has no name', async () => {
    const parent = await workshop.newPath()
    await mkdir(parent)
    await chown(parent, 54321, 54321)
    const service = workshop.service(join(parent, 'data'), { uid: 54321 })
    expect((await service.event('refused')).message).toMatch(/54321.*Add user 54321 to \/etc\/passwd/)
  })

  it('gives up with a reason where it may not make the data directory', async () => {
    const parent = await workshop.newPath()
    await mkdir(parent)
    const service = workshop.service(join(parent, 'data'), { uid: nobody.uid })
    expect((await service.event('refused')).message).toMatch(/Cannot use the data directory .*EACCES/)
    expect(await ownerOf(parent, thisMachine().passwdFile)).toMatchObject({ uid: 0 })
  })
})
