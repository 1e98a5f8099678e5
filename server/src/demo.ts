import { randomBytes } from 'node:crypto'
import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hash } from '@node-rs/argon2'
import { companies, contacts, deals, demoModelWithModules } from './demo-content.ts'
import { type DemoProgress, openProgress } from './demo-progress.ts'
import { existsCredential, insertCredential, type NewCredential } from './features/credentials/store.ts'
import { insertBuilderSession } from './features/platform/account/session-store.ts'
import { existsAccount, insertAccount } from './features/platform/account/store.ts'
import { findApplications, insertApplication } from './features/platform/applications/store.ts'
import {
  bumpOrganization,
  existsOrganization,
  insertLocation,
  insertOrganization,
  insertUser,
} from './features/tenancy/store.ts'
import { uuidv7 } from './kernel/ids.ts'
import { allScopes } from './kernel/scopes.ts'
import { nativeModules } from './native-modules.ts'
import { registry } from './operations.ts'
import type { Service } from './service.ts'
import type { Database } from './shared/database/database.ts'
import { hashSecret, makeToken } from './shared/identity/tokens.ts'
import { applyModel } from './shared/modelling/apply.ts'

/**
 * The demo: two applications with organisations, people, credentials and records to look at, made when the database is
 * empty. `<data dir>/demo.json` tells a first client everything that it needs; its shape is fixed (contract 1). The
 * records are written through the API itself, with the demo's own credentials.
 *
 * It is made in steps, each one transaction. A start that is killed between them leaves its progress in a file, and the
 * next one goes on from there.
 */
export interface DemoOptions {
  readonly service: Pick<Service, 'database' | 'invoke'>
  readonly pepper: Uint8Array
  readonly dataDir: string
  readonly baseUrl: string
}

const demoDays = 365

/** Makes the demo, unless there is an application of somebody's. Returns the path of demo.json, or undefined. */
export async function createDemo({ service, pepper, dataDir, baseUrl }: DemoOptions): Promise<string | undefined> {
  const { database } = service
  const path = join(dataDir, 'demo.json')
  const progress = await openProgress(`${path}.unfinished`)
  const ours = ['acme-crm', 'globex-desk'].map((appKey) => progress.recall(appKey))
  const existing = await database.as('portico_owner', findApplications)
  if (existing.some(({ appId }) => !ours.includes(appId))) {
    await refreshAddresses(path, baseUrl)
    return undefined
  }
  const seed = { database, pepper, host: new URL(baseUrl), progress }
  const { accountId, credentials: builder } = await makeBuilder(seed)
  const crm = await makeApplication(seed, accountId, 'acme-crm', 'Acme CRM')
  const desk = await makeApplication(seed, accountId, 'globex-desk', 'Globex Desk')
  const northwind = await makeOrganization(seed, crm, 'northwind', 'Northwind Traders')
  const contoso = await makeOrganization(seed, crm, 'contoso', 'Contoso')
  const initech = await makeOrganization(seed, desk, 'initech', 'Initech')
  const inactive = await makeInactive(seed, crm)
  const { expired, revoked } = await makeSpent(seed, crm, northwind)
  await makeRecords(service, crm, northwind, 60, 300)
  await makeRecords(service, crm, contoso, 20, 60)
  await makeRecords(service, desk, initech, 10, 30)

  const content = {
    baseUrl,
    builder,
    apps: [
      { saasAppId: crm, appKey: 'acme-crm', organizations: [northwind, contoso] },
      { saasAppId: desk, appKey: 'globex-desk', organizations: [initech] },
    ],
    inactiveToken: inactive,
    expiredToken: expired,
    revokedToken: revoked,
  }
  await writeWhole(path, content)
  await progress.forget()
  return path
}

/** The service may have moved to another port since the demo was made; its file must lead to where it is. */
async function refreshAddresses(path: string, baseUrl: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return
  const demo = JSON.parse(text) as {
    baseUrl: string
    apps: { organizations: { slug: string; tenantHost: string }[] }[]
  }
  if (demo.baseUrl === baseUrl) return
  demo.baseUrl = baseUrl
  for (const organization of demo.apps.flatMap((app) => app.organizations)) {
    organization.tenantHost = tenantHostOf(organization.slug, new URL(baseUrl))
  }
  await writeWhole(path, demo)
}

/** Whole or not at all: a client that finds the file can use it. */
async function writeWhole(path: string, content: unknown): Promise<void> {
  await writeFile(`${path}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await chmod(`${path}.new`, 0o600)
  await rename(`${path}.new`, path)
}

function tenantHostOf(slug: string, { hostname, port }: URL): string {
  return `${slug}.${hostname === '127.0.0.1' ? 'localhost' : hostname}${port ? `:${port}` : ''}`
}

interface Seed {
  readonly database: Database
  readonly pepper: Uint8Array
  readonly host: URL
  readonly progress: DemoProgress
}

type Organization = Awaited<ReturnType<typeof newOrganization>>
/** Called at the end of a transaction; returns what it is given. */
type Keep = <T>(value: T) => Promise<T>

const newId = () => uuidv7(Date.now())
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

function newPassword(): string {
  return randomBytes(12).toString('base64url')
}

/**
 * Makes something in one transaction, at whose end it calls `keep`; or recalls it, where an earlier start came to its
 * commit.
 */
async function once<T>(
  { progress }: Seed,
  name: string,
  isThere: (made: T) => Promise<boolean>,
  make: (keep: Keep) => Promise<T>,
): Promise<T> {
  const made = progress.recall<T>(name)
  if (made !== undefined && (await isThere(made))) return made
  return make(async (value) => {
    await progress.keep(name, value)
    return value
  })
}

interface Builder {
  readonly accountId: string
  readonly credentials: { readonly email: string; readonly password: string; readonly token: string }
}

function makeBuilder(seed: Seed): Promise<Builder> {
  const { database, pepper } = seed
  const isThere = ({ accountId }: Builder) => database.as('portico_owner', (tx) => existsAccount(tx, accountId))
  return once<Builder>(seed, 'builder', isThere, async (keep) => {
    const password = newPassword()
    const accountId = newId()
    const builderId = newId()
    const email = 'builder@portico.example'
    const token = makeToken('bld')
    const passwordHash = await hash(password)
    return database.as('portico_owner', async (tx) => {
      await insertAccount(tx, { accountId, name: 'Demo', builderId, email, displayName: 'Demo builder', passwordHash })
      const secretHash = hashSecret(pepper, token.secret)
      const expiresAt = inDays(demoDays)
      await insertBuilderSession(tx, { keyId: token.keyId, accountId, builderId, secretHash, expiresAt })
      return keep({ accountId, credentials: { email, password, token: token.text } })
    })
  })
}

async function makeApplication(seed: Seed, accountId: string, appKey: string, name: string): Promise<string> {
  const { database } = seed
  const isThere = async (appId: string) =>
    (await database.as('portico_owner', findApplications)).some((application) => application.appId === appId)
  const made = await once<string>(seed, appKey, isThere, (keep) => {
    const appId = newId()
    const schemaName = `app_${randomBytes(6).toString('hex')}`
    return database.as('portico_owner', async (tx) => {
      await insertApplication(tx, { appId, accountId, appKey, name, schemaName }, nativeModules.objects)
      return keep(appId)
    })
  })
  await applyModel(database, made, demoModelWithModules, nativeModules.behaviours)
  return made
}

const memberScopes = allScopes.filter((scope) => !/\.manage$|^pages\.|^workflows\.run$/.test(scope))

function makeOrganization(seed: Seed, appId: string, slug: string, name: string): Promise<Organization> {
  const isThere = ({ organizationId }: Organization) => organizationIsThere(seed, organizationId)
  return once<Organization>(seed, slug, isThere, (keep) => newOrganization(seed, appId, slug, name, keep))
}

function organizationIsThere({ database }: Seed, organizationId: string): Promise<boolean> {
  return database.inOrganization(organizationId, (tx) => existsOrganization(tx, organizationId))
}

async function newOrganization(seed: Seed, appId: string, slug: string, name: string, keep: Keep) {
  const { database, host } = seed
  const organizationId = newId()
  const locations = { north: newId(), south: newId() }
  const [ownerHash, salesHash, supportHash, outsiderHash] = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const password = newPassword()
      return { password, passwordHash: await hash(password) }
    }),
  )
  return database.inOrganization(organizationId, async (tx) => {
    const dataRoles = await insertOrganization(tx, { organizationId, appId, name, slug })
    for (const [locationKey, locationId] of Object.entries(locations)) {
      const label = `${locationKey[0]!.toUpperCase()}${locationKey.slice(1)}`
      await insertLocation(tx, { organizationId, locationId, locationKey, name: label })
    }
    const credential = async (
      kind: NewCredential['kind'],
      displayName: string,
      scopes: readonly string[],
      userId?: string,
    ) => {
      const token = makeToken(kind)
      const secretHash = hashSecret(seed.pepper, token.secret)
      const expiresAt = kind === 'dat' ? inDays(demoDays) : null
      const row = { organizationId, appId, kind, keyId: token.keyId, secretHash, displayName, scopes, expiresAt }
      await insertCredential(tx, userId === undefined ? row : { ...row, userId })
      return token.text
    }
    const person = async (
      key: string,
      secret: { password: string; passwordHash: string } | undefined,
      membership: { isOwner?: boolean; dataRoleIds?: string[]; locationIds?: 'all' | string[]; userTypeKey: string },
      scopes: readonly string[],
    ) => {
      const { password, passwordHash } = secret!
      const user = { userId: newId(), email: `${key}@${slug}.example`, displayName: `${name} ${key}` }
      await insertUser(tx, { organizationId, ...user, passwordHash, ...membership })
      const token = await credential('dat', `Demo token of ${key}`, scopes, user.userId)
      return { userId: user.userId, email: user.email, password, token }
    }
    const members = {
      owner: await person('owner', ownerHash, { isOwner: true, locationIds: 'all', userTypeKey: 'owner' }, allScopes),
      sales: await person(
        'sales',
        salesHash,
        { dataRoleIds: [dataRoles['sales']!], locationIds: [locations.north], userTypeKey: 'staff' },
        memberScopes,
      ),
      support: await person(
        'support',
        supportHash,
        { dataRoleIds: [dataRoles['support']!], locationIds: 'all', userTypeKey: 'staff' },
        memberScopes,
      ),
      outsider: await person('outsider', outsiderHash, { userTypeKey: 'staff' }, memberScopes),
    }
    const credentials = {
      live: await credential('live', 'Demo server', allScopes),
      liveRecordsRead: await credential('live', 'Demo server, records.read only', ['records.read']),
      liveNoScopes: await credential('live', 'Demo server without scopes', []),
      draft: await credential('draft', 'Demo page editor', ['pages.draft']),
    }
    const tenantHost = tenantHostOf(slug, host)
    return keep({ organizationId, slug, tenantHost, credentials, dataRoles, locations, users: members })
  })
}

/** A token that is right in every respect, of an organisation that is not active. */
async function makeInactive(seed: Seed, appId: string): Promise<string> {
  const { database, pepper } = seed
  const isThere = (made: { organizationId: string }) => organizationIsThere(seed, made.organizationId)
  const { text } = await once(seed, 'dormant', isThere, (keep) => {
    const organizationId = newId()
    const userId = newId()
    const token = makeToken('dat')
    return database.inOrganization(organizationId, async (tx) => {
      await insertOrganization(tx, { organizationId, appId, name: 'Dormant', slug: 'dormant', status: 'inactive' })
      await insertUser(tx, {
        organizationId,
        userId,
        email: 'owner@dormant.example',
        displayName: 'Dormant owner',
        passwordHash: null,
        userTypeKey: 'owner',
        isOwner: true,
        locationIds: 'all',
      })
      const secretHash = hashSecret(pepper, token.secret)
      const common = { organizationId, appId, userId, displayName: 'Demo token', scopes: allScopes }
      const expiresAt = inDays(demoDays)
      await insertCredential(tx, { ...common, kind: 'dat', keyId: token.keyId, secretHash, expiresAt })
      return keep({ organizationId, text: token.text })
    })
  })
  return text
}

function makeSpent(seed: Seed, appId: string, { organizationId, users }: Organization) {
  const { database, pepper } = seed
  const isThere = (made: { keyId: string }) =>
    database.inOrganization(organizationId, (tx) => existsCredential(tx, made.keyId))
  return once(seed, 'spent', isThere, (keep) => {
    const expired = makeToken('dat')
    const revoked = makeToken('live')
    return database.inOrganization(organizationId, async (tx) => {
      const common = { organizationId, appId, displayName: 'Demo token', scopes: allScopes }
      const hashOf = (token: { secret: string }) => hashSecret(pepper, token.secret)
      await insertCredential(tx, {
        ...common,
        kind: 'dat',
        keyId: expired.keyId,
        secretHash: hashOf(expired),
        userId: users.owner.userId,
        expiresAt: inDays(-1),
      })
      await insertCredential(tx, {
        ...common,
        kind: 'live',
        keyId: revoked.keyId,
        secretHash: hashOf(revoked),
        revokedAt: inDays(-1),
      })
      await bumpOrganization(tx, organizationId)
      return keep({ keyId: expired.keyId, expired: expired.text, revoked: revoked.text })
    })
  })
}

/** Records through the API, as any client would write them. */
async function makeRecords(
  { invoke }: DemoOptions['service'],
  appId: string,
  organization: Organization,
  companyCount: number,
  dealCount: number,
): Promise<void> {
  const write = async (operationId: string, objectKey: string, items: readonly object[]): Promise<string[]> => {
    const ids: string[] = []
    for (let start = 0; start < items.length; start += 200) {
      const response = await invoke(registry.get(operationId)!, {
        correlationId: newId(),
        token: organization.credentials.live,
        address: '',
        host: '',
        userAgent: '',
        params: { saasAppId: appId, ...(objectKey !== '' && { objectKey }) },
        query: {},
        readBody: () => ({ atomic: true, items: items.slice(start, start + 200) }),
        idempotencyKey: undefined,
        ifMatch: undefined,
      })
      if (response.status !== 200) throw new Error(`The demo could not be written: ${response.payload}`)
      const { results } = response.body as { results: { record: { recordId: string } }[] }
      ids.push(...results.map((result) => result.record.recordId))
    }
    return ids
  }
  const companyIds = await write('developerRecordsBatch', 'company', companies(companyCount, organization))
  await write('developerRecordsBatch', 'deal', deals(dealCount, organization, companyIds))
  await write('developerModulesContactsBatch', '', contacts(dealCount, organization))
}
