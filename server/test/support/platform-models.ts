import { type Account, type Freshness, made } from './platform-account.ts'

/** Applications and models that the good requests of an account are about. */
export function applicationBody(account: Account) {
  return { appKey: account.key('app'), name: account.name('app'), description: account.name('description') }
}

/** The application that everything else is in, with a release of its model; a new one has no model. */
export function application(account: Account, freshness: Freshness = 'once'): Promise<string> {
  return made(account, 'application', freshness, async () => {
    const body = applicationBody(account)
    const { saasAppId } = await account.call<{ saasAppId: string }>('POST', '/v1/platform/applications', body)
    if (freshness === 'once') await release(account, saasAppId)
    return saasAppId
  })
}

/** An object with a text field, without its key. */
export function objectBody(account: Account) {
  const fields = [{ fieldKey: 'title', label: account.name('field'), dataType: 'text', searchable: true }]
  return { label: account.name('object'), pluralLabel: account.name('objects'), nameField: 'title', fields }
}

/** A model with one of everything. */
export function modelDocument(account: Account) {
  const objectKey = account.key('thing')
  const ends = { from: objectKey, to: objectKey, cardinality: 'many-to-many', deleteRule: 'unlink' }
  return {
    objects: [{ objectKey, ...objectBody(account) }],
    relationships: {
      [account.key('link')]: { label: account.name('link'), inverseLabel: account.name('inverse'), ...ends },
    },
    roles: { [account.key('role')]: { label: account.name('role'), objects: { [objectKey]: { read: true } } } },
    locations: { [account.key('site')]: { label: account.name('site') } },
  }
}

function draftPath(saasAppId: string): string {
  return `/v1/platform/applications/${saasAppId}/model/draft`
}

async function release(account: Account, saasAppId: string): Promise<void> {
  await account.call('PUT', draftPath(saasAppId), { document: modelDocument(account) })
  await account.call('POST', `${draftPath(saasAppId)}:publish`, { note: account.name('release') })
}

/** An application of its own with a draft that can be published, or after two releases. */
export async function draftedApplication(account: Account): Promise<string> {
  const saasAppId = await application(account, 'new')
  await account.call('PUT', draftPath(saasAppId), { document: modelDocument(account) })
  return saasAppId
}

export async function releasedApplication(account: Account): Promise<string> {
  const saasAppId = await application(account, 'new')
  await release(account, saasAppId)
  await release(account, saasAppId)
  return saasAppId
}

/** An object in the draft of the application. */
export async function objectParams(account: Account, freshness: Freshness = 'once') {
  const saasAppId = await application(account)
  return made(account, 'object', freshness, async () => {
    const objectKey = account.key('thing')
    await account.call('PUT', `${draftPath(saasAppId)}/objects/${objectKey}`, { object: objectBody(account) })
    return { saasAppId, objectKey }
  })
}

export function fieldKey(account: Account): string {
  return account.key('field').replaceAll('-', '_')
}

/** One more field of that object. */
export async function fieldParams(account: Account) {
  const params = { ...(await objectParams(account)), fieldKey: fieldKey(account) }
  const path = `${draftPath(params.saasAppId)}/objects/${params.objectKey}/fields/${params.fieldKey}`
  await account.call('PUT', path, { field: { label: account.name('field'), dataType: 'text' } })
  return params
}

/** One more role in the draft. */
export async function partParams(account: Account) {
  const params = { saasAppId: await application(account), partKind: 'roles', partKey: account.key('role') }
  const path = `${draftPath(params.saasAppId)}/roles/${params.partKey}`
  await account.call('PUT', path, { part: { label: account.name('role'), objects: {} } })
  return params
}
