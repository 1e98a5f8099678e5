import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type RecordService, startRecordService } from '../test/support/record-service.ts'
import { pepper } from '../test/support/tenants.ts'
import { createDemo } from './demo.ts'
import { findApplications } from './features/platform/applications/store.ts'
import type { Service } from './service.ts'

/** A first start that is killed leaves a demo that the next one completes. */
let running: RecordService
let dataDir: string

beforeEach(async () => {
  running = await startRecordService()
  dataDir = await mkdtemp(join(tmpdir(), 'portico-demo-'))
})
afterEach(async () => {
  await running.close()
  await rm(dataDir, { recursive: true, force: true })
})

type DemoService = Pick<Service, 'database' | 'invoke'>

function make(service: DemoService): Promise<string | undefined> {
  return createDemo({ service, pepper, dataDir, baseUrl: 'http://127.0.0.1:8080' })
}

class Killed extends Error {}

/** The service of a process that is killed right after its n-th dealing with the database. */
function mortal(service: Service, dealings: number): DemoService {
  let left = dealings
  const last = async <T>(dealing: Promise<T>): Promise<T> => {
    const value = await dealing
    if (--left <= 0) throw new Killed()
    return value
  }
  const { database, invoke } = service
  return {
    database: {
      ...database,
      as: (role, work) => last(database.as(role, work)),
      inOrganization: (organizationId, work) => last(database.inOrganization(organizationId, work)),
    },
    invoke: (operation, request) => last(invoke(operation, request)),
  }
}

async function expectWholeDemo(): Promise<void> {
  const { apps, builder } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  expect(apps.map((app: { appKey: string }) => app.appKey)).toEqual(['acme-crm', 'globex-desk'])
  expect(builder.token).toMatch(/^ptc_bld_/)
  const counts: Record<string, [companies: number, deals: number]> = {
    northwind: [60, 300],
    contoso: [20, 60],
    initech: [10, 30],
  }
  for (const { saasAppId, organizations } of apps) {
    for (const { slug, credentials, users } of organizations) {
      for (const token of [credentials.live, users.owner.token]) {
        const count = (objectKey: string) =>
          running.send<{ totalRecords: number }>(
            'developerRecordsCount',
            { token, keyId: '' },
            {
              params: { saasAppId, objectKey },
              body: {},
            },
          )
        const found = [await count('company'), await count('deal')].map((answer) => answer.body.totalRecords)
        expect(found).toEqual(counts[slug])
      }
    }
  }
  expect(await readdir(dataDir)).toEqual(['demo.json'])
}

test.each([1, 2, 3, 5])(
  'killed again and again, each time %i dealings later, it is whole in the end',
  async (dealings) => {
    const { service } = running
    let starts = 0
    for (let allowed = dealings; ; allowed += dealings) {
      starts++
      try {
        await make(mortal(service, allowed))
        break
      } catch (error) {
        if (!(error instanceof Killed)) throw error
      }
    }
    expect(starts).toBeGreaterThan(2)
    await expectWholeDemo()
    const applications = await service.database.as('portico_owner', findApplications)
    expect(applications).toHaveLength(2)
  },
)

test('is not made where somebody has an application, nor twice', async () => {
  await make(running.service)
  const first = await readFile(join(dataDir, 'demo.json'), 'utf8')
  expect(await make(running.service)).toBeUndefined()
  expect(await readFile(join(dataDir, 'demo.json'), 'utf8')).toBe(first)
  await expectWholeDemo()
})
