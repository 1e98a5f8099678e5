import { randomBytes } from 'node:crypto'
import { demoModelWithModules } from '../src/demo-content.ts'
import { insertCredential } from '../src/features/credentials/store.ts'
import { insertApplication } from '../src/features/platform/applications/store.ts'
import { insertLocation, insertOrganization, insertUser } from '../src/features/tenancy/store.ts'
import { uuidv7 } from '../src/kernel/ids.ts'
import { allScopes } from '../src/kernel/scopes.ts'
import { nativeModules } from '../src/native-modules.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { type ObjectDefinition, readModel } from '../src/shared/catalogue/catalogue.ts'
import { openDatabase } from '../src/shared/database/database.ts'
import { hashSecret, makeToken } from '../src/shared/identity/tokens.ts'
import { applyModel } from '../src/shared/modelling/apply.ts'
import { createAccount } from '../test/support/accounts.ts'

/** The application that is measured: the model of the demo, one organisation to ask, another one in the same tables. */
export interface Tenant {
  readonly appId: string
  readonly deal: { readonly table: string; readonly objectId: string; readonly searchTag: string }
  readonly company: { readonly table: string; readonly objectId: string }
  readonly contacts: {
    readonly table: string
    readonly objectId: string
    /** By the key of the field. */
    readonly searchTags: Readonly<Record<string, string>>
  }
  readonly organization: Organization
  readonly neighbour: Organization
}

export interface Organization {
  readonly organizationId: string
  readonly dataRoles: Readonly<Record<string, string>>
  readonly locations: { readonly north: string; readonly south: string }
  /** Sees everything. */
  readonly liveToken: string
  readonly liveKeyId: string
  /** Somebody of one role at one location, who sees about half of the records. */
  readonly sales: { readonly userId: string; readonly token: string }
  readonly owner: { readonly userId: string }
}

const newId = () => uuidv7(Date.now())

export async function makeTenant(connection: ConnectionSettings, pepper: Uint8Array): Promise<Tenant> {
  const database = openDatabase({ connection, poolSize: 2 })
  try {
    const { accountId } = await createAccount(database)
    const appId = newId()
    const schemaName = `app_${randomBytes(6).toString('hex')}`
    // With the native modules, as every application has them: a service that had to add them would change its contract meanwhile.
    await database.as('portico_owner', (tx) =>
      insertApplication(tx, { appId, accountId, appKey: 'bench', name: 'Bench', schemaName }, nativeModules.objects),
    )
    await applyModel(database, appId, demoModelWithModules, nativeModules.behaviours)
    const model = await database.as('portico_owner', (tx) => readModel(tx, appId, ''))
    const deal = model.byKey.get('deal')!
    const contacts = model.byKey.get('contacts')!
    const make = (slug: string) => {
      const organizationId = newId()
      return database.inOrganization(organizationId, async (tx): Promise<Organization> => {
        const dataRoles = await insertOrganization(tx, { organizationId, appId, name: slug, slug })
        const locations = { north: newId(), south: newId() }
        for (const [locationKey, locationId] of Object.entries(locations)) {
          await insertLocation(tx, { organizationId, locationId, locationKey, name: locationKey })
        }
        const member = async (key: string, membership: object) => {
          const userId = newId()
          const user = { userId, email: `${key}@${slug}.example`, displayName: key, passwordHash: null }
          await insertUser(tx, { organizationId, ...user, userTypeKey: key, ...membership })
          return userId
        }
        const ownerId = await member('owner', { isOwner: true, locationIds: 'all' })
        const salesId = await member('sales', { dataRoleIds: [dataRoles['sales']], locationIds: [locations.north] })
        const credential = async (kind: 'live' | 'dat', userId: string | null) => {
          const token = makeToken(kind)
          const secretHash = hashSecret(pepper, token.secret)
          const row = { organizationId, appId, kind, keyId: token.keyId, secretHash, displayName: kind, userId }
          await insertCredential(tx, { ...row, scopes: allScopes })
          return token
        }
        const live = await credential('live', null)
        return {
          organizationId,
          dataRoles,
          locations,
          liveToken: live.text,
          liveKeyId: live.keyId,
          sales: { userId: salesId, token: (await credential('dat', salesId)).text },
          owner: { userId: ownerId },
        }
      })
    }
    return {
      appId,
      deal: { table: deal.table, objectId: deal.objectId, searchTag: deal.nameField.searchTag! },
      company: { table: model.byKey.get('company')!.table, objectId: model.byKey.get('company')!.objectId },
      contacts: { table: contacts.table, objectId: contacts.objectId, searchTags: searchTagsIn(contacts) },
      organization: await make('asked'),
      neighbour: await make('neighbour'),
    }
  } finally {
    await database.close()
  }
}

function searchTagsIn({ fields }: ObjectDefinition): Record<string, string> {
  return Object.fromEntries(fields.flatMap(({ fieldKey, searchTag }) => (searchTag ? [[fieldKey, searchTag]] : [])))
}
