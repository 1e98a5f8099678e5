import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { describeKeyManagement } from './conformance.ts'
import { keysOfEnvironment } from './environment.ts'
import { keysOfFile, readMasterKeyFile } from './local-file.ts'
import { appRole, type FakeVault, startFakeVault } from './vault/testing.ts'
import { keysOfVault } from './vault.ts'

const newFolder = () => mkdtemp(join(tmpdir(), 'portico-keys-'))

describeKeyManagement('local-file', async () => {
  const folders = [await newFolder(), await newFolder()] as const
  const path = join(folders[0], 'master.key')
  return {
    first: keysOfFile(await readMasterKeyFile(folders[0])),
    stranger: keysOfFile(await readMasterKeyFile(folders[1])),
    async rotate() {
      await writeFile(path, `${randomBytes(32).toString('base64')}\n${await readFile(path, 'utf8')}`)
      return keysOfFile(await readMasterKeyFile(folders[0]))
    },
    async close() {
      for (const folder of folders) await rm(folder, { recursive: true })
    },
  }
})

describeKeyManagement('environment', async () => {
  const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)]
  return {
    first: keysOfEnvironment({ current: first, previous: [] }),
    stranger: keysOfEnvironment({ current: second, previous: [] }),
    rotate: async () => keysOfEnvironment({ current: third, previous: [first] }),
    close: async () => {},
  }
})

for (const auth of [{ token: 'hvs.of-portico' }, appRole]) {
  describeKeyManagement(`vault, with ${'token' in auth ? 'a token' : 'an AppRole'},`, async () => {
    const vault = await startFakeVault()
    if ('token' in auth) vault.tokens.add(auth.token)
    for (const name of ['portico', 'other']) vault.rotate(name)
    const first = keysOfVault({ address: vault.address, auth, key: 'transit/portico' })
    return {
      first,
      stranger: keysOfVault({ address: vault.address, auth, key: 'transit/other' }),
      async rotate() {
        vault.rotate('portico')
        return first
      },
      close: () => vault.close(),
    }
  })
}

describe('local-file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await newFolder()
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('makes one key for processes that start together, readable by its owner alone', async () => {
    const dataDir = join(folder, 'data')
    const read = await Promise.all(Array.from({ length: 8 }, () => readMasterKeyFile(dataDir)))
    expect(new Set(read.map(({ current }) => Buffer.from(current).toString('hex'))).size).toBe(1)
    expect(await readdir(dataDir)).toEqual(['master.key'])
    expect((await stat(join(dataDir, 'master.key'))).mode & 0o077).toBe(0)
    expect(await readMasterKeyFile(dataDir)).toEqual(read[0])
  })

  it('says which line is no key, without repeating it, and makes none in the place of an empty file', async () => {
    const path = join(folder, 'master.key')
    await writeFile(path, `${randomBytes(32).toString('hex')}\nhunter2\n`)
    const refusal = await readMasterKeyFile(folder).catch((error: Error) => error.message)
    expect(refusal).toBe(`${path} cannot be used: line 2 must be 32 bytes in base64 or hex.`)
    await writeFile(path, '\n')
    await expect(readMasterKeyFile(folder)).rejects.toThrow('it is empty')
    expect(await readFile(path, 'utf8')).toBe('\n')
  })

  it('and environment know a key wherever it is kept', async () => {
    const { current } = await readMasterKeyFile(join(folder, 'moved'))
    const file = keysOfFile({ current, previous: [] })
    const environment = keysOfEnvironment({ current, previous: [] })
    const key = randomBytes(32)
    expect(await environment.unwrap(await file.wrap(key, 'x'), 'x')).toEqual(key)
  })
})

describe('vault', () => {
  let vault: FakeVault
  const token = 'hvs.canary-token'
  beforeAll(async () => {
    vault = await startFakeVault()
    vault.rotate('portico')
  })
  afterEach(() => {
    vault.behave = undefined
    vault.tokens.clear()
    vault.requests.length = 0
  })
  afterAll(() => vault.close())

  const open = (options: Partial<Parameters<typeof keysOfVault>[0]> = {}) =>
    keysOfVault({ address: vault.address, auth: { token }, key: 'transit/portico', pauseMs: 1, ...options })
  const refusal = (attempt: Promise<unknown>) =>
    attempt.then(
      () => ({ reason: 'none', message: '' }),
      ({ reason, message }) => ({ reason, message }),
    )

  it('says what the policy must allow when the token may not', async () => {
    const { reason, message } = await refusal(open().currentKeyId())
    expect(reason).toBe('refused')
    expect(message).toContain('"read" on transit/keys/portico and "update" on transit/encrypt/portico')
    expect(message).not.toContain(token)
  })

  it('says how to make a key that is not there, and does not make it by encrypting', async () => {
    vault.tokens.add(token)
    const { reason, message } = await refusal(open({ key: 'transit/misspelt' }).wrap(randomBytes(32), 'x'))
    expect(reason).toBe('refused')
    expect(message).toContain('vault write -f transit/keys/misspelt')
    expect(vault.requests).toEqual(['/v1/transit/keys/misspelt'])
  })

  it('refuses a key whose cipher authenticates no context', async () => {
    vault.behave = (_, response) => response.end(JSON.stringify({ data: { type: 'rsa-2048', latest_version: 1 } }))
    expect((await refusal(open().currentKeyId())).message).toContain('must be of type')
  })

  it('waits for one that is sealed for a moment', async () => {
    vault.tokens.add(token)
    vault.behave = (_, response) => {
      vault.behave = undefined
      response.writeHead(503).end('{"errors":["Vault is sealed"]}')
    }
    expect(await open().currentKeyId()).toBe('vault:transit/portico:v1')
    expect(vault.requests).toHaveLength(2)
  })

  it('gives up on one that stays sealed, says nothing in time, or is not there', async () => {
    vault.behave = (_, response) => response.writeHead(503).end('{"errors":["Vault is sealed"]}')
    const sealed = await refusal(open().currentKeyId())
    expect(sealed).toEqual({
      reason: 'unavailable',
      message: `Vault at ${vault.address} answers 503: Vault is sealed. Check PORTICO_VAULT_ADDR.`,
    })
    expect(vault.requests).toHaveLength(3)
    vault.behave = () => {}
    expect(await refusal(open({ timeoutMs: 50 }).currentKeyId())).toMatchObject({
      reason: 'unavailable',
      message: expect.stringContaining('does not answer: timeout'),
    })
    expect(await refusal(open({ address: 'http://127.0.0.1:1' }).currentKeyId())).toMatchObject({
      reason: 'unavailable',
      message: expect.stringContaining('http://127.0.0.1:1 does not answer'),
    })
  })

  it('does not follow a redirect, which would take the token along', async () => {
    vault.behave = (_, response) => response.writeHead(307, { location: `${vault.address}/v1/elsewhere` }).end()
    expect((await refusal(open().currentKeyId())).message).toContain('answers 307')
    expect(vault.requests).not.toContain('/v1/elsewhere')
  })

  it('reads no answer without end, and none that is not JSON', async () => {
    vault.behave = (_, response) => response.end('x'.repeat(100_000))
    expect((await refusal(open().currentKeyId())).reason).toBe('unavailable')
    vault.behave = (_, response) => response.end('<html>')
    expect((await refusal(open().currentKeyId())).reason).toBe('refused')
  })

  it('logs in again when the token of an AppRole has expired', async () => {
    const keys = open({ auth: appRole })
    const wrapped = await keys.wrap(randomBytes(32), 'x')
    expect(vault.requests.filter((path) => path.endsWith('/login'))).toHaveLength(1)
    vault.tokens.clear()
    await keys.unwrap(wrapped, 'x')
    expect(vault.requests.filter((path) => path.endsWith('/login'))).toHaveLength(2)
  })

  it('says which settings to check when the AppRole is refused, without telling the secret id', async () => {
    const keys = open({ auth: { roleId: 'nobody', secretId: 'canary-secret' } })
    const { reason, message } = await refusal(keys.currentKeyId())
    expect([reason, message]).toEqual(['refused', expect.stringContaining('Check PORTICO_VAULT_ROLE_ID')])
    expect(message).not.toContain('canary-secret')
  })
})
