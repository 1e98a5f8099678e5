import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lintProblems, unexplained, violations } from '../../../test/contract-checks.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { shownIn } from '../../../test/support/shown-requests.ts'
import { modules } from '../../features/modules/descriptors.ts'
import { registry } from '../../operations.ts'
import type { Json } from './json-schema.ts'

/** Native modules in the contract: all that the caller may use, in a document of bounded size. */
let service: TestService
beforeAll(async () => {
  service = await startTestService({ modules: true })
})
afterAll(() => service.stop())

async function documentOf(token: string): Promise<{ document: Json; text: string }> {
  const { status, json, text } = await service.call('GET', `/v1/apps/${service.app.appId}/openapi.json`, { token })
  expect(status).toBe(200)
  return { document: json as Json, text }
}

const isOfModule = (id: string) => id.startsWith('developerModules') && !id.startsWith('developerModulesGlobalSearch')

describe('who may do everything', () => {
  test('is shown every operation of every module, in a valid document below two megabytes', async () => {
    const { document, text } = await documentOf(service.app.organizations.a.credentials.live.token)
    const shown = [...shownIn(document).keys()].filter(isOfModule).toSorted()
    expect(shown).toEqual(
      registry.operations
        .map((operation) => operation.id)
        .filter(isOfModule)
        .toSorted(),
    )
    expect(await violations(document)).toEqual([])
    expect(await lintProblems(text)).toEqual([])
    expect(unexplained(document)).toEqual([])
    expect(Buffer.byteLength(text)).toBeLessThan(2_000_000)
    const tags = (document['tags'] as { name: string; description: string }[]).map((tag) => [tag.name, tag.description])
    expect(tags).toEqual(expect.arrayContaining(modules.map((module) => [module.pluralLabel, module.description])))
  })

  test('finds bodies and rows described field by field', async () => {
    const { document } = await documentOf(service.app.organizations.a.credentials.live.token)
    const schemas = (document['components'] as Json)['schemas'] as Record<string, { properties: Record<string, Json> }>
    expect(Object.keys(schemas['Contact']!.properties)).toEqual(
      expect.arrayContaining(['recordId', 'displayName', 'emails', 'primaryEmail', 'ownerUserId', 'revision']),
    )
    expect(schemas['NewContact']!.properties['displayName']).toMatchObject({ readOnly: true })
    expect(schemas['NewContact']!.properties['contactType']).toMatchObject({ enum: ['person', 'company'] })
    expect(schemas['NewContact']!.properties['contactType']).toMatchObject({ default: 'person' })
    expect(schemas['ContactsCreate']!.properties['contactType']).toMatchObject({ default: 'person' })
    // A generated client sends the defaults that it finds: with a change they would undo what is there.
    for (const name of ['ContactChanges', 'ContactBatchItem', 'ContactsUpdate', 'ContactsFields']) {
      expect(JSON.stringify(schemas[name]), name).not.toContain('"default"')
    }
    expect(JSON.stringify(schemas['NewInvoice']!.properties['lines'])).toContain('#/components/schemas/InvoiceLines')
  })
})

test('who has a role for contacts alone is shown their operations alone', async () => {
  const { document } = await documentOf(service.app.organizations.a.users.sales.token)
  const shown = [...shownIn(document).keys()].filter(isOfModule)
  expect(shown.length).toBeGreaterThan(10)
  expect(shown.filter((id) => !id.startsWith('developerModulesContacts'))).toEqual([])
  const outsider = await documentOf(service.app.organizations.a.users.outsider.token)
  expect([...shownIn(outsider.document).keys()].filter(isOfModule)).toEqual([])
})
