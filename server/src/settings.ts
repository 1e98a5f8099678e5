import { resolve } from 'node:path'
import {
  bearer,
  databaseUrl,
  headerValue,
  integer,
  nameServers,
  networks,
  oneOf,
  origin,
  scale,
  vaultKey,
} from './config-values.ts'
import { parseMasterKey } from './kernel/master-key.ts'
import { logLevels } from './shared/log.ts'
import { readSender, readSmtpUrl } from './shared/mail/sender.ts'

/**
 * The settings of the service: one row for each environment variable, which `config.ts` reads.
 * `docs/configuration.md` is generated from the rows. A setting exists only when something reads it.
 */
export interface Setting<T> {
  readonly name: string
  /** The values it takes, in words. */
  readonly values: string
  /** What holds when it is not set, in words. */
  readonly fallback: string
  readonly description: string
  /** What `PORTICO_MODE=production` demands of it, in words. */
  readonly production?: string
  /** Throws an Error with words for people; they must not repeat the value, which may be a secret. */
  read(text: string): T
}

const modes = ['development', 'production'] as const
const roles = ['all', 'api', 'worker'] as const
const keyHolders = ['local', 'environment', 'vault'] as const

export const rows = {
  mode: setting({
    name: 'PORTICO_MODE',
    values: modes.join(' or '),
    fallback: 'development',
    description: 'In production nothing is made up: the demo is off, and what a real service needs is required.',
    read: (text) => oneOf(modes, text),
  }),
  role: setting({
    name: 'PORTICO_ROLE',
    values: roles.join(', ').replace(/, (\w+)$/, ' or $1'),
    fallback: 'all',
    description:
      'What this process does. An api answers requests, a worker sends webhooks and carries long operations on; of each there may be any number on one database. The port of a worker has `/healthz`, `/readyz` and `/metrics` alone.',
    read: (text) => oneOf(roles, text),
  }),
  host: setting({
    name: 'PORTICO_HOST',
    values: 'a host name or an address',
    fallback: '127.0.0.1',
    description: 'Where the service listens. 0.0.0.0 or :: listens everywhere.',
    read: (text) => text,
  }),
  port: setting({
    name: 'PORTICO_PORT',
    values: 'an integer from 1 to 65535',
    fallback: '8080',
    description: 'The port that the service listens on.',
    read: (text) => integer(text, 1, 65_535),
  }),
  baseUrl: setting({
    name: 'PORTICO_BASE_URL',
    values: 'an http or https origin',
    fallback: 'http://127.0.0.1:`PORTICO_PORT`',
    description: 'Where clients reach the API. Its host is the API host; tenants live on `<slug>.<host>`.',
    production: 'required, https',
    read: origin,
  }),
  trustedProxies: setting({
    name: 'PORTICO_TRUSTED_PROXIES',
    values: 'addresses and networks in CIDR notation, with commas between them',
    fallback: 'none: who connects is the client',
    description: 'Proxies in front of the service, whose `X-Forwarded-For` says where a request comes from.',
    read: networks,
  }),
  dnsServers: setting({
    name: 'PORTICO_DNS_SERVERS',
    values: 'addresses, with commas between them, each alone or with a port: 192.0.2.53:5353, [2001:db8::53]:53',
    fallback: 'those of the system',
    description:
      'The name servers that are asked whether an organization holds the domain that it wants (see platform.md), and where webhooks go.',
    read: nameServers,
  }),
  allowPrivateDestinations: setting({
    name: 'PORTICO_ALLOW_PRIVATE_DESTINATIONS',
    values: '1 or 0',
    fallback: '0: webhooks go to public addresses, with https',
    description:
      'Let webhooks go to this machine (loopback addresses), with http too: for development. See webhooks.md.',
    production: 'has no effect: private destinations are refused',
    read: (text) => oneOf(['1', '0'], text) === '1',
  }),
  extraCaFile: setting({
    name: 'PORTICO_EXTRA_CA_FILE',
    values: 'a PEM file',
    fallback: 'none: the authorities that come with Node.js',
    description: 'Authorities that are trusted as well when webhooks are sent.',
    read: (text) => resolve(text),
  }),
  dataDir: setting({
    name: 'PORTICO_DATA_DIR',
    values: 'a folder',
    fallback: './data',
    description: 'Where the service keeps what it keeps on disk: the embedded database, keys, `demo.json`.',
    read: (text) => resolve(text),
  }),
  databaseUrl: setting({
    name: 'DATABASE_URL',
    values: 'postgres://user:password@host:port/database',
    fallback: 'the embedded PostgreSQL, under `PORTICO_DATA_DIR`',
    description: 'A PostgreSQL 15 or later of your own. The user must be allowed to create roles and schemas.',
    production: 'required',
    read: databaseUrl,
  }),
  databasePoolSize: setting({
    name: 'PORTICO_DATABASE_POOL_SIZE',
    values: 'an integer from 2 to 200',
    fallback: '16',
    description: 'How many connections to the database one process opens at most.',
    read: (text) => integer(text, 2, 200),
  }),
  keyManagement: setting({
    name: 'PORTICO_KEY_MANAGEMENT',
    values: keyHolders.join(', ').replace(/, (\w+)$/, ' or $1'),
    fallback: 'vault with `PORTICO_VAULT_ADDR`, environment with `PORTICO_MASTER_KEY`, else local',
    description:
      'Who holds the key that all secrets are sealed under: `master.key` in `PORTICO_DATA_DIR`, `PORTICO_MASTER_KEY`, or Vault. See secrets.md.',
    production: 'must not be local',
    read: (text) => oneOf(keyHolders, text),
  }),
  masterKey: setting({
    name: 'PORTICO_MASTER_KEY',
    values: '32 bytes in base64 or hex, for instance from `openssl rand -base64 32`',
    fallback: 'a key made at the first start, in `PORTICO_DATA_DIR`',
    description: 'The key that all other keys are sealed under. Whoever loses it loses every credential and secret.',
    production: 'required, unless Vault holds the key',
    read: parseMasterKey,
  }),
  masterKeyPrevious: setting({
    name: 'PORTICO_MASTER_KEY_PREVIOUS',
    values: 'one or more such keys, with commas between them',
    fallback: 'none',
    description: 'Master keys that were replaced, until `npm run keys -- rewrap` has run.',
    read: (text) => text.split(',').map((one) => parseMasterKey(one.trim())),
  }),
  vaultAddr: setting({
    name: 'PORTICO_VAULT_ADDR',
    values: 'an http or https origin',
    fallback: 'none',
    description: 'Where HashiCorp Vault or OpenBao answers. Also set while secrets move away from it.',
    production: 'https, or this machine',
    read: origin,
  }),
  vaultKey: setting({
    name: 'PORTICO_VAULT_KEY',
    values: 'mount/name of a Transit key',
    fallback: 'transit/portico',
    description: 'The key of Vault that data keys are wrapped under.',
    read: vaultKey,
  }),
  vaultToken: setting({
    name: 'PORTICO_VAULT_TOKEN',
    values: 'a token of Vault',
    fallback: 'none: the AppRole is used',
    description: 'What the service shows Vault. It has to be renewed by somebody else; an AppRole does not.',
    read: headerValue,
  }),
  vaultRoleId: setting({
    name: 'PORTICO_VAULT_ROLE_ID',
    values: 'the role id of an AppRole',
    fallback: 'none',
    description: 'With `PORTICO_VAULT_SECRET_ID` instead of a token: the service logs in when it has to.',
    read: (text) => text,
  }),
  vaultSecretId: setting({
    name: 'PORTICO_VAULT_SECRET_ID',
    values: 'a secret id of that AppRole',
    fallback: 'none',
    description: 'See `PORTICO_VAULT_ROLE_ID`.',
    read: (text) => text,
  }),
  smtpUrl: setting({
    name: 'PORTICO_SMTP_URL',
    values: 'smtps://user:password@host:port, or smtp:// for STARTTLS',
    fallback: 'none: mail is written into `mail/` in `PORTICO_DATA_DIR`',
    description: 'The mail server that takes invitations and password resets. See mail.md.',
    production: 'without it nobody gets mail',
    read: readSmtpUrl,
  }),
  mailFrom: setting({
    name: 'PORTICO_MAIL_FROM',
    values: 'an address, or Name <address>',
    fallback: 'Portico <no-reply@host>, with the host of `PORTICO_BASE_URL`',
    description: 'Who mail comes from. The mail server must let the service send from there.',
    read: readSender,
  }),
  billingCatalogFile: setting({
    name: 'PORTICO_BILLING_CATALOG_FILE',
    values: 'a JSON file',
    fallback: 'one plan that costs nothing',
    description: 'The plans that builders see under `/v1/platform/billing/catalog`. See platform.md.',
    read: (text) => resolve(text),
  }),
  demo: setting({
    name: 'PORTICO_DEMO',
    values: 'on or off',
    fallback: 'on in development',
    description: 'Fill an empty database with a demo, and write what a first client needs to `demo.json`.',
    production: 'must not be on',
    read: (text) => oneOf(['on', 'off'], text) === 'on',
  }),
  rateLimitScale: setting({
    name: 'PORTICO_RATE_LIMIT_SCALE',
    values: 'a number from 0',
    fallback: '1',
    description: 'Multiplies every rate limit. 0 turns them off.',
    production: 'must be above 0',
    read: scale,
  }),
  logLevel: setting({
    name: 'PORTICO_LOG_LEVEL',
    values: logLevels.join(', ').replace(/, (\w+)$/, ' or $1'),
    fallback: 'info',
    description: 'The least severe log lines that are written.',
    read: (text) => oneOf(logLevels, text),
  }),
  metricsToken: setting({
    name: 'PORTICO_METRICS_TOKEN',
    values: '16 or more of the characters A–Z a–z 0–9 - . _ ~ + /',
    fallback: 'none: `/metrics` is open in development and does not exist in production',
    description: 'What `/metrics` has to be asked with, as `Authorization: Bearer <token>`.',
    read: bearer,
  }),
  shutdownSeconds: setting({
    name: 'PORTICO_SHUTDOWN_SECONDS',
    values: 'an integer from 1 to 600',
    fallback: '15',
    description: 'How long requests in flight may take to finish after SIGTERM.',
    read: (text) => integer(text, 1, 600),
  }),
}

/** The rows in the order of the documentation. */
export const settings: readonly Setting<unknown>[] = Object.values(rows)

/** Infers the type of a row. */
function setting<T>(row: Setting<T>): Setting<T> {
  return row
}
