import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { freePort, makeRoot, removeRoot, ServiceProcess } from '../../acceptance/support/service.ts'
import { asAdministrator } from '../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase, urlOf } from '../test/support/database.ts'
import { type FakeVault, startFakeVault } from './ports/key-management/vault/testing.ts'

/** Rotation as an operator does it: services in processes of their own, the command beside them, one database. */
type Environment = Readonly<Record<string, string>>

let root: string
let testbed: TestDatabase
let vault: FakeVault
const running: ServiceProcess[] = []
let said = ''

const [first, second] = [randomBytes(32), randomBytes(32)]
const vaultToken = 'hvs.canary-of-the-rotation'
const withFirst: Environment = { PORTICO_MASTER_KEY: first.toString('hex') }
const withBoth: Environment = {
  PORTICO_MASTER_KEY: second.toString('base64'),
  PORTICO_MASTER_KEY_PREVIOUS: first.toString('hex'),
}
const withSecond: Environment = { PORTICO_MASTER_KEY: second.toString('base64') }
const withVault = (): Environment => ({ PORTICO_VAULT_ADDR: vault.address, PORTICO_VAULT_TOKEN: vaultToken })

beforeAll(async () => {
  root = await makeRoot()
  testbed = await createTestDatabase()
  vault = await startFakeVault()
  vault.tokens.add(vaultToken)
  vault.rotate('portico')
})
afterEach(() => Promise.all(running.splice(0).map(stop)))
afterAll(async () => {
  await testbed?.drop()
  await vault?.close()
  await removeRoot(root)
})

const settings = (keys: Environment): Environment => ({
  DATABASE_URL: urlOf(testbed.connection),
  PORTICO_DATA_DIR: join(root, 'data'),
  ...keys,
})

async function launch(keys: Environment): Promise<ServiceProcess> {
  const env = { ...settings(keys), PORTICO_LOG_LEVEL: 'trace' }
  const service = new ServiceProcess({ dataDir: join(root, 'data'), port: await freePort(), env })
  running.push(service)
  return service
}

async function start(keys: Environment): Promise<ServiceProcess> {
  const service = await launch(keys)
  await service.untilReady()
  return service
}

async function stop(service: ServiceProcess): Promise<void> {
  await service.stop()
  said += service.output
}

/** A request with the credential that the very first start issued. */
async function statusOf(service: ServiceProcess): Promise<number> {
  const { apps } = await service.demo()
  const { saasAppId, organizations } = apps[0]!
  const headers = { authorization: `Bearer ${organizations[0]!.credentials.live}` }
  return (await fetch(`${service.baseUrl}/v1/apps/${saasAppId}/objects`, { headers })).status
}

/** Runs `npm run keys -- …` to its end. */
async function run(keys: Environment, ...args: string[]): Promise<{ code: number; output: string }> {
  const command = [join(import.meta.dirname, 'keys-command.ts'), ...args]
  const env = { PATH: process.env['PATH'], ...settings(keys) }
  const { code, output } = await promisify(execFile)(process.execPath, command, { env }).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  )
  said += output
  return { code, output }
}

test('before the first start there is nothing to rotate, and the command says so', async () => {
  expect(await run(withFirst, 'rotate-data-key')).toEqual({
    code: 1,
    output: 'There is no data key yet. Start the service once.\n',
  })
  expect((await run(withFirst, 'status')).output).toContain('no data key yet')
})

test('a data key is rotated beside a running service', async () => {
  const service = await start(withFirst)
  expect(await statusOf(service)).toBe(200)
  expect((await run(withFirst, 'rotate-data-key')).output).toContain('Data key 2 seals from now on.')
  const { output } = await run(withFirst, 'status')
  expect(output).toMatch(/data key 1: .* under master:\w{16}: opens\n.*data key 2: .*: seals and opens\n$/)
  expect(await statusOf(service)).toBe(200)
})

test('the master key is replaced under running services, and credentials work throughout', async () => {
  const old = await start(withFirst)
  const renewed = await start(withBoth)
  expect([await statusOf(old), await statusOf(renewed)]).toEqual([200, 200])
  expect(renewed.output).toContain('npm run keys -- rewrap')
  expect((await run(withBoth, 'status')).output).toContain('opens, to be re-wrapped')

  expect(await run(withBoth, 'rewrap')).toEqual({
    code: 0,
    output:
      'Wrapped 2 data keys under the current key of PORTICO_MASTER_KEY. The previous key is not needed any more, ' +
      'unless an old backup is to be read.\n',
  })
  expect((await run(withBoth, 'rewrap')).output).toContain('already')
  expect([await statusOf(old), await statusOf(renewed)]).toEqual([200, 200])
  expect(await statusOf(await start(withSecond))).toBe(200)
})

test('then the old master key alone is refused at the start, and by the command', async () => {
  const service = await launch(withFirst)
  expect(await service.ended).toEqual({ code: 1, signal: null })
  expect(service.output).toMatch(
    /Portico could not start\.\nThe secrets of this database are sealed under the key master:/,
  )
  expect((await run(withFirst, 'status')).output).toContain('cannot be opened (unknown_key)')
  expect(await run(withFirst, 'rewrap')).toMatchObject({ code: 1, output: expect.stringContaining('not configured') })
})

test('the key moves to Vault, and to a new version of its key there', async () => {
  expect(await statusOf(await start({ ...withVault(), ...withSecond }))).toBe(200)
  await run({ ...withVault(), ...withSecond }, 'rewrap')
  const service = await start(withVault())
  expect(await statusOf(service)).toBe(200)

  vault.rotate('portico')
  expect((await run(withVault(), 'rewrap')).output).toContain('Wrapped 2 data keys')
  expect((await run(withVault(), 'status')).output).toMatch(/under vault:transit\/portico:v2: seals and opens\n$/)
  expect(await statusOf(await start(withVault()))).toBe(200)
})

test('a start says what is wrong with Vault', async () => {
  const service = await launch({ ...withVault(), PORTICO_VAULT_TOKEN: 'hvs.wrong' })
  expect(await service.ended).toEqual({ code: 1, signal: null })
  expect(service.output).toContain('Vault refuses this token. Its policy must allow')
})

test('a misuse of the command prints how to use it', async () => {
  for (const args of [[], ['rotate'], ['rewrap', 'twice'], ['toString']]) {
    expect(await run(withVault(), ...args)).toMatchObject({
      code: 1,
      output: expect.stringContaining('Usage: npm run keys'),
    })
  }
})

test('no key, token or secret was said or logged on the way, and no key is in the database', async () => {
  expect(said).toContain('Wrapped')
  const secrets = [vaultToken, ...[first, second].flatMap((key) => [key.toString('hex'), key.toString('base64')])]
  const stored = await asAdministrator(testbed.connection, async (admin) => {
    const { rows } = await admin.query<{ text: string }>(
      `SELECT (SELECT string_agg(to_jsonb(k)::text, ' ') FROM portico.data_key k)
        || (SELECT string_agg(to_jsonb(i)::text, ' ') FROM portico.installation i) AS text`,
    )
    return rows[0]!.text
  })
  expect(stored).toContain('service keys')
  for (const secret of secrets) {
    expect(said).not.toContain(secret)
    expect(stored).not.toContain(secret)
  }
})
