import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ConfigError, type Environment, idleSettings, readConfig } from './config.ts'
import { settings } from './settings.ts'

const masterKey = Buffer.alloc(32, 7)
const production = {
  PORTICO_MODE: 'production',
  PORTICO_BASE_URL: 'https://api.portico.test',
  PORTICO_MASTER_KEY: masterKey.toString('base64'),
  DATABASE_URL: 'postgres://portico:hunter2@db.internal/portico',
}

function problemsOf(env: Environment): readonly string[] {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

test('an empty environment is a development service on this machine', () => {
  expect(readConfig({})).toEqual({
    mode: 'development',
    role: 'all',
    host: '127.0.0.1',
    port: 8080,
    baseUrl: 'http://127.0.0.1:8080',
    trustedProxies: [],
    dnsServers: [],
    allowPrivateDestinations: false,
    extraCaFile: null,
    dataDir: resolve('data'),
    databaseUrl: null,
    databasePoolSize: 16,
    keyManagement: 'local',
    masterKey: null,
    masterKeyPrevious: [],
    vault: null,
    smtpUrl: null,
    mailFrom: { name: 'Portico', address: 'no-reply@localhost' },
    billingCatalogFile: null,
    demo: true,
    rateLimitScale: 1,
    logLevel: 'info',
    metricsToken: undefined,
    shutdownSeconds: 15,
  })
  expect(readConfig({ PORTICO_PORT: '', PORTICO_MODE: '' }).port).toBe(8080)
})

test('values are read as what they are', () => {
  const config = readConfig({
    PORTICO_PORT: ' 9000 ',
    PORTICO_DATA_DIR: '/var/lib/portico',
    PORTICO_RATE_LIMIT_SCALE: '0',
    PORTICO_DEMO: 'off',
    PORTICO_DNS_SERVERS: '192.0.2.53 , 192.0.2.53:5353,2001:db8::53,[2001:db8::53]:53',
    PORTICO_TRUSTED_PROXIES: ' 10.0.0.0/08 ,192.0.2.1,2001:db8::/32',
    PORTICO_MASTER_KEY: masterKey.toString('hex'),
  })
  expect(config).toMatchObject({
    port: 9000,
    baseUrl: 'http://127.0.0.1:9000',
    dataDir: '/var/lib/portico',
    rateLimitScale: 0,
    demo: false,
    dnsServers: ['192.0.2.53', '192.0.2.53:5353', '2001:db8::53', '[2001:db8::53]:53'],
    trustedProxies: ['10.0.0.0/8', '192.0.2.1', '2001:db8::/32'],
  })
  expect(Buffer.from(config.masterKey!)).toEqual(masterKey)
  expect(readConfig({ PORTICO_BASE_URL: 'https://api.portico.test/' }).baseUrl).toBe('https://api.portico.test')
})

test.each([
  ['PORTICO_MODE', 'staging'],
  ['PORTICO_PORT', '0'],
  ['PORTICO_PORT', 'tcp://10.0.0.1:80'],
  ['PORTICO_BASE_URL', 'api.portico.test'],
  ['PORTICO_BASE_URL', 'https://api.portico.test/v1'],
  ['PORTICO_BASE_URL', 'https://user:pass@api.portico.test'],
  ['PORTICO_BASE_URL', 'ftp://api.portico.test'],
  ['DATABASE_URL', 'mysql://hunter2@db'],
  ['PORTICO_DATABASE_POOL_SIZE', '1'],
  ['PORTICO_MASTER_KEY', 'hunter2'],
  ['PORTICO_SMTP_URL', 'mail.portico.test:587'],
  ['PORTICO_SMTP_URL', 'https://hunter2@mail.portico.test'],
  ['PORTICO_SMTP_URL', 'smtp://user:hunter2%@mail.portico.test'],
  ['PORTICO_SMTP_URL', 'smtp://user:hunter2@mail.portico.test?tls=no'],
  ['PORTICO_SMTP_URL', 'smtp://user:hunter2@mail.portico.test/path'],
  ['PORTICO_SMTP_URL', 'smtp://:587'],
  ['PORTICO_MAIL_FROM', 'hunter2'],
  ['PORTICO_MAIL_FROM', 'Ann <ann@portico.test>, hunter2 <b@portico.test>'],
  ['PORTICO_MAIL_FROM', 'hunter2\r\nBcc: eve <ann@portico.test>'],
  ['PORTICO_MASTER_KEY_PREVIOUS', `${masterKey.toString('hex')}, hunter2`],
  ['PORTICO_KEY_MANAGEMENT', 'hunter2'],
  ['PORTICO_KEY_MANAGEMENT', 'environment'],
  ['PORTICO_KEY_MANAGEMENT', 'vault'],
  ['PORTICO_VAULT_ADDR', 'https://user:hunter2@vault.internal'],
  ['PORTICO_VAULT_ADDR', 'https://vault.internal:8200'],
  ['PORTICO_VAULT_KEY', '../hunter2'],
  ['PORTICO_VAULT_TOKEN', 'hunter2 with spaces'],
  ['PORTICO_TRUSTED_PROXIES', 'hunter2'],
  ['PORTICO_TRUSTED_PROXIES', '10.0.0.1, hunter2'],
  ['PORTICO_TRUSTED_PROXIES', '10.0.0.1,'],
  ['PORTICO_TRUSTED_PROXIES', '10.0.0.0/33'],
  ['PORTICO_TRUSTED_PROXIES', '10.0.0.0/'],
  ['PORTICO_TRUSTED_PROXIES', 'fe80::1%eth0'],
  ['PORTICO_TRUSTED_PROXIES', '::/129'],
  ['PORTICO_TRUSTED_PROXIES', '0.0.0.0/0'],
  ['PORTICO_TRUSTED_PROXIES', '::/0'],
  ['PORTICO_DNS_SERVERS', 'hunter2.portico.test'],
  ['PORTICO_DNS_SERVERS', '192.0.2.53,'],
  ['PORTICO_DNS_SERVERS', '192.0.2.53:0'],
  ['PORTICO_DNS_SERVERS', '192.0.2.53:65536'],
  ['PORTICO_DNS_SERVERS', '[192.0.2.53]:53'],
  ['PORTICO_DNS_SERVERS', '[fe80::1%eth0]:53'],
  ['PORTICO_DEMO', 'yes'],
  ['PORTICO_RATE_LIMIT_SCALE', '-1'],
  ['PORTICO_LOG_LEVEL', 'loud'],
  ['PORTICO_METRICS_TOKEN', 'hunter2'],
  ['PORTICO_METRICS_TOKEN', 'hunter2 with spaces in it'],
  ['PORTICO_SHUTDOWN_SECONDS', '1.5'],
])('%s=%s is refused by name, and its value is not repeated', (name, value) => {
  const problems = problemsOf({ [name]: value })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(new RegExp(`^${name} .*\\.$`))
  expect(problems[0]).not.toContain('hunter2')
})

test('mail goes through a server of its own, from a sender of its own', () => {
  const smtpUrl = 'smtps://user%40portico.test:pass%2Fword@mail.portico.test:2465'
  const read = (from: string) => readConfig({ PORTICO_SMTP_URL: smtpUrl, PORTICO_MAIL_FROM: from })
  const address = 'no-reply@portico.test'
  expect(read(address)).toMatchObject({ smtpUrl, mailFrom: { name: '', address } })
  expect(read(`Portico Team <${address}>`).mailFrom).toEqual({ name: 'Portico Team', address })
  expect(read(`"Team, all of it" <${address}>`).mailFrom).toEqual({ name: 'Team, all of it', address })
  expect(readConfig(production).mailFrom.address).toBe('no-reply@api.portico.test')
})

test('all problems are told at once', () => {
  expect(problemsOf({ PORTICO_PORT: 'x', PORTICO_DEMO: 'x', PORTICO_LOG_LEVEL: 'x' })).toHaveLength(3)
})

test('production leaves nothing to chance', () => {
  expect(readConfig(production)).toMatchObject({ mode: 'production', demo: false, metricsToken: null })
  const metricsToken = 'a-token-for-prometheus'
  expect(readConfig({ ...production, PORTICO_METRICS_TOKEN: metricsToken })).toMatchObject({ metricsToken })
  expect(problemsOf({ PORTICO_MODE: 'production' }).map((problem) => problem.split(' ')[0])).toEqual([
    'PORTICO_BASE_URL',
    'DATABASE_URL',
    'PORTICO_MASTER_KEY',
  ])
  expect(problemsOf({ ...production, PORTICO_BASE_URL: 'http://api.portico.test' })).toHaveLength(1)
  expect(problemsOf({ ...production, PORTICO_DEMO: 'on' })).toHaveLength(1)
  expect(problemsOf({ ...production, PORTICO_RATE_LIMIT_SCALE: '0' })).toHaveLength(1)
})

const vault = { PORTICO_VAULT_ADDR: 'https://vault.internal:8200', PORTICO_VAULT_TOKEN: 'hvs.token' }

test('whoever is configured holds the key, and the others can be named for a move', () => {
  const hex = masterKey.toString('hex')
  const holderOf = (env: Environment) => readConfig(env).keyManagement
  expect(holderOf({ PORTICO_MASTER_KEY: hex })).toBe('environment')
  expect(holderOf(vault)).toBe('vault')
  expect(holderOf({ ...vault, PORTICO_MASTER_KEY: hex })).toBe('vault')
  expect(holderOf({ ...vault, PORTICO_MASTER_KEY: hex, PORTICO_KEY_MANAGEMENT: 'environment' })).toBe('environment')
  const { masterKeyPrevious } = readConfig({ PORTICO_MASTER_KEY_PREVIOUS: `${hex}, ${masterKey.toString('base64')}` })
  expect(masterKeyPrevious.map((one) => Buffer.from(one))).toEqual([masterKey, masterKey])
})

test('vault is asked with a token or as an AppRole', () => {
  const address = vault.PORTICO_VAULT_ADDR
  expect(readConfig(vault).vault).toEqual({ address, key: 'transit/portico', auth: { token: 'hvs.token' } })
  const appRole = { PORTICO_VAULT_ROLE_ID: 'role', PORTICO_VAULT_SECRET_ID: 'secret', PORTICO_VAULT_KEY: 'ns/keys/app' }
  expect(readConfig({ PORTICO_VAULT_ADDR: address, ...appRole }).vault).toEqual({
    address,
    key: 'ns/keys/app',
    auth: { roleId: 'role', secretId: 'secret' },
  })
})

test('in production the key does not lie beside the data, nor travel in the clear', () => {
  const { PORTICO_MASTER_KEY: _, ...keyless } = production
  expect(readConfig({ ...keyless, ...vault })).toMatchObject({ keyManagement: 'vault', masterKey: null })
  expect(problemsOf({ ...production, PORTICO_KEY_MANAGEMENT: 'local' })).toEqual([
    'PORTICO_KEY_MANAGEMENT cannot be local in production.',
  ])
  expect(problemsOf({ ...keyless, ...vault, PORTICO_VAULT_ADDR: 'http://vault.internal' })).toEqual([
    'PORTICO_VAULT_ADDR must be an https URL in production: data keys pass through it.',
  ])
  expect(problemsOf({ ...keyless, ...vault, PORTICO_VAULT_ADDR: 'http://127.0.0.1:8200' })).toEqual([])
})

test('every row has a name of its own and says what it is', () => {
  expect(new Set(settings.map((row) => row.name)).size).toBe(settings.length)
  for (const row of settings) expect(row.description).toMatch(/^[A-Z].*\.$/)
})

test('private destinations are for development alone, and production says that the setting does nothing', () => {
  const asked = { PORTICO_ALLOW_PRIVATE_DESTINATIONS: '1' }
  expect(readConfig(asked).allowPrivateDestinations).toBe(true)
  expect(idleSettings(readConfig(asked), asked)).toEqual([])
  const env = { ...production, ...asked }
  const config = readConfig(env)
  expect(config.allowPrivateDestinations).toBe(false)
  expect(idleSettings(config, env)).toEqual([expect.stringContaining('PORTICO_ALLOW_PRIVATE_DESTINATIONS')])
  expect(idleSettings(readConfig(production), production)).toEqual([])
})
