import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type ApiRecord, expectRefusal } from '../support/api.ts'
import type { Target } from '../support/target.ts'

/** The first hour of somebody who has demo.json and a client for HTTP (contract 4). */
export function walkRecords(target: Target): void {
  /** Whatever runs before or beside this. */
  const mark = randomUUID().slice(0, 8)

  interface ObjectList {
    readonly objects: readonly {
      readonly objectKey: string
      readonly kind: string
      readonly operations: readonly string[]
      readonly access: Readonly<Record<string, boolean>>
    }[]
  }

  interface Schema {
    readonly objectKey: string
    readonly fields: readonly {
      readonly fieldKey: string
      readonly dataType: string
      readonly operators: readonly string[]
    }[]
    readonly sortValues: readonly string[]
    readonly jsonSchema: Readonly<Record<'record' | 'create' | 'update', { readonly properties: object }>>
  }

  async function newDeal(fields: Readonly<Record<string, unknown>> = {}, more: object = {}): Promise<ApiRecord> {
    const answer = await target.live.create('deal', { fields: { name: `Deal ${mark}`, ...fields }, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.body
  }

  describe('discovery', () => {
    it('lists the objects and what may be done with them', async () => {
      const { body } = await target.live.get<ObjectList>('/objects')
      expect(body.objects.map((object) => object.objectKey)).toEqual(expect.arrayContaining(['company', 'deal']))
      expect(body.objects.find((object) => object.objectKey === 'deal')).toMatchObject({
        kind: 'custom',
        access: { read: true, create: true, update: true, archive: true },
      })
    })

    it('describes every field of an object', async () => {
      const { body } = await target.live.get<Schema>('/objects/deal/schema')
      const types = Object.fromEntries(body.fields.map((field) => [field.fieldKey, field.dataType]))
      expect(types).toEqual({
        name: 'text',
        stage: 'select',
        amount: 'decimal',
        probability: 'float',
        closeDate: 'date',
        company: 'reference',
        notes: 'longText',
      })
      expect(body.sortValues).toEqual(expect.arrayContaining(['created_desc', 'name_asc', 'amount_desc']))
      expect(Object.keys(body.jsonSchema.create.properties)).toEqual(Object.keys(types))
      expectRefusal(await target.live.get('/objects/nothing/schema'), 404, 'object_not_found')
    })
  })

  describe('search', () => {
    it('filters, sorts, expands and totals', async () => {
      const { status, body } = await target.live.search('deal', {
        filter: {
          and: [
            { field: 'stage', op: 'eq', value: 'open' },
            { field: 'amount', op: 'gte', value: '20000' },
            { related: 'company', some: { field: 'employees', op: 'gt', value: 10 } },
          ],
        },
        sort: ['amount_desc', 'name_asc'],
        expand: ['company'],
        fields: ['name', 'stage', 'amount', 'company'],
        pageSize: 10,
        includeTotal: true,
      })
      expect(status).toBe(200)
      expect(body).toMatchObject({ hasMore: true, page: 1, pageSize: 10, totalIsExact: true })
      expect(body.totalRecords).toBeGreaterThan(10)
      const amounts = body.records.map((record) => Number(record.fields['amount']))
      expect(amounts).toEqual(amounts.toSorted((a, b) => b - a))
      for (const { fields, expanded } of body.records) {
        expect(Object.keys(fields).sort()).toEqual(['amount', 'company', 'name', 'stage'])
        expect(fields['stage']).toBe('open')
        expect(expanded!['company']!.recordId).toBe(fields['company'])
        expect(expanded!['company']!.fields['employees']).toBeGreaterThan(10)
      }
    })

    it('reaches every record once, by page and by cursor', async () => {
      const { body: counted } = await target.live.send<{ totalRecords: number }>(
        'POST',
        '/objects/company/records/count',
        {},
      )
      const byPage: string[] = []
      for (let page = 1, more = true; more; page++) {
        const { body } = await target.live.search('company', { page, pageSize: 17, sort: 'name_asc' })
        byPage.push(...body.records.map((record) => record.recordId))
        more = body.hasMore
      }
      const byCursor: string[] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const { body } = await target.live.search('company', {
          pageSize: 17,
          sort: 'name_asc',
          ...(cursor && { cursor }),
        })
        byCursor.push(...body.records.map((record) => record.recordId))
        cursor = body.nextCursor
      }
      expect(byPage).toHaveLength(counted.totalRecords)
      expect(new Set(byPage).size).toBe(byPage.length)
      expect(byCursor).toEqual(byPage)
    })

    it('finds words in searchable fields, whatever their case', async () => {
      const deal = await newDeal({ name: `Zürich pilot ${mark}` })
      const { body } = await target.live.search('deal', { search: `ZURICH ${mark}` })
      expect(body.records.map((record) => record.recordId)).toEqual([deal.recordId])
      expect((await target.live.search('deal', { search: `zurich ${mark} nowhere` })).body.records).toEqual([])
    })

    it('refuses what it does not understand, and names it', async () => {
      const details = async (body: object, code: string) =>
        expectRefusal(await target.live.search('deal', body), 400, code).details?.map((detail) => detail.field)
      expect(await details({ filter: { field: 'colour', op: 'eq', value: 1 } }, 'unknown_field')).toEqual([
        'filter.field',
      ])
      expect(await details({ filter: { field: 'stage', op: 'near', value: 'x' } }, 'filter_invalid')).toEqual([
        'filter.op',
      ])
      expect(await details({ sort: 'colour_asc' }, 'sort_invalid')).toEqual(['sort'])
      expect(await details({ pageSize: 201 }, 'page_size_exceeded')).toEqual(['pageSize'])
      expect(await details({ page: 1, cursor: 'x' }, 'page_and_cursor')).toEqual(['cursor'])
      expect(await details({ colour: 'red' }, 'unknown_field')).toEqual(['colour'])
    })
  })

  describe('the life of a record', () => {
    it('begins with an address, a revision and everything that was sent', async () => {
      const answer = await target.live.create('deal', {
        fields: { name: `Deal ${mark}`, stage: 'open', amount: '1250.50', closeDate: '2026-12-01' },
        externalKey: `first-${mark}`,
      })
      expect(answer.status).toBe(201)
      const { recordId } = answer.body
      const path = `/v1/apps/${target.app.saasAppId}/objects/deal/records/${recordId}`
      expect(answer.headers.get('location')).toBe(path)
      expect(answer.headers.get('etag')).toBe('"1"')
      const keyId = target.organization.credentials.live.split('_')[2]
      expect(answer.body).toStrictEqual({
        recordId,
        objectKey: 'deal',
        displayName: `Deal ${mark}`,
        fields: {
          name: `Deal ${mark}`,
          stage: 'open',
          amount: '1250.50',
          probability: null,
          closeDate: '2026-12-01',
          company: null,
          notes: null,
        },
        ownerUserId: null,
        dataRoleId: null,
        locationId: null,
        externalKey: `first-${mark}`,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        createdBy: { kind: 'credential', id: keyId },
        updatedAt: answer.body.createdAt,
        updatedBy: { kind: 'credential', id: keyId },
        archivedAt: null,
        revision: 1,
        access: { canUpdate: true, canArchive: true },
      })
      const read = await target.live.record('GET', answer.body)
      expect(read.body).toStrictEqual(answer.body)
      expect(read.headers.get('etag')).toBe('"1"')
    })

    it('changes under If-Match, and refuses who comes too late', async () => {
      const deal = await newDeal({ stage: 'open' })
      const change = (fields: object, revision: string) =>
        target.live.record('PATCH', deal, '', { fields }, { 'if-match': revision })
      const changed = await change({ stage: 'won' }, '"1"')
      expect([changed.status, changed.body.revision, changed.headers.get('etag')]).toEqual([200, 2, '"2"'])

      const late = await change({ stage: 'lost' }, '"1"')
      expect(expectRefusal(late, 409, 'revision_conflict').details![0]).toMatchObject({
        field: 'If-Match',
        message: expect.stringContaining('2'),
      })
      const lateToo = await target.live.record('PATCH', deal, '', { fields: {}, expectedRevision: 1 })
      expectRefusal(lateToo, 409, 'revision_conflict')
      expect((await target.live.record('GET', deal)).body.fields['stage']).toBe('won')
    })

    it('leaves lists when it is archived, comes back when it is restored, and remembers both', async () => {
      const deal = await newDeal()
      const isListed = async () => {
        const filter = { field: 'recordId', op: 'eq', value: deal.recordId }
        return (await target.live.search('deal', { filter })).body.records.length === 1
      }
      const archived = await target.live.record('DELETE', deal)
      expect(archived.status).toBe(200)
      expect(archived.body.archivedAt).not.toBeNull()
      expect(await isListed()).toBe(false)
      expectRefusal(await target.live.record('PATCH', deal, '', { fields: { stage: 'won' } }), 409, 'record_archived')

      const restored = await target.live.record('POST', deal, ':restore')
      expect([restored.status, restored.body.archivedAt, restored.body.revision]).toEqual([200, null, 3])
      expect(await isListed()).toBe(true)

      await target.live.record('PATCH', deal, '', { fields: { stage: 'won' } })
      const history = await target.live.record<{ items: { operation: string; changes: unknown[] }[] }>(
        'GET',
        deal,
        '/history',
      )
      expect(history.body.items.map((item) => item.operation)).toEqual(['updated', 'restored', 'archived', 'created'])
      expect(history.body.items[0]!.changes).toEqual([{ field: 'stage', before: null, after: 'won' }])
    })

    it('refuses values that are wrong, and writes nothing of them', async () => {
      const name = `Refused ${mark}`
      const create = (fields: object) => target.live.create('deal', { fields: { name, ...fields } })
      const field = (answer: Awaited<ReturnType<typeof create>>, code: string, status = 400) =>
        expectRefusal(answer, status, code).details?.map((detail) => detail.field)
      expect(field(await create({ name: null }), 'required_field_missing')).toEqual(['fields.name'])
      expect(field(await create({ amount: 'much' }), 'field_value_invalid')).toEqual(['fields.amount'])
      expect(field(await create({ stage: 'lukewarm' }), 'field_value_invalid')).toEqual(['fields.stage'])
      expect(field(await create({ colour: 'red' }), 'unknown_field')).toEqual(['fields.colour'])
      expect(field(await create({ company: randomUUID() }), 'reference_not_found')).toEqual(['fields.company'])
      const domain = `${mark}.example`
      expect((await target.live.create('company', { fields: { name, domain } })).status).toBe(201)
      const twin = await target.live.create('company', { fields: { name, domain: domain.toUpperCase() } })
      expect(field(twin, 'duplicate_value', 409)).toEqual(['fields.domain'])
      const filter = { field: 'name', op: 'eq', value: name }
      expect((await target.live.search('deal', { filter })).body.records).toEqual([])
    })
  })

  describe('counts', () => {
    it('are exact, and say so', async () => {
      const name = `Counted ${mark}`
      for (let n = 0; n < 3; n++) await newDeal({ name })
      const { body } = await target.live.send('POST', '/objects/deal/records/count', {
        filter: { field: 'name', op: 'eq', value: name },
      })
      expect(body).toStrictEqual({
        totalRecords: 3,
        totalIsExact: true,
        contractVersion: expect.stringMatching(/^\d/),
      })
    })
  })

  describe('batches and keys', () => {
    it('does each item for itself, or all or nothing', async () => {
      interface Results {
        readonly results: readonly { index: number; status: number; record?: ApiRecord; error?: { code: string } }[]
      }
      const batch = (body: object) => target.live.send<Results>('POST', '/objects/deal/records:batch', body)
      const good = { operation: 'create', fields: { name: `Batch ${mark}` } }
      const bad = { operation: 'create', fields: { name: `Batch ${mark}`, amount: 'much' } }
      const { status, body } = await batch({ items: [good, bad, good] })
      expect(status).toBe(200)
      expect(body.results.map((result) => [result.index, result.status, result.error?.code])).toEqual([
        [0, 201, undefined],
        [1, 400, 'field_value_invalid'],
        [2, 201, undefined],
      ])
      const refused = expectRefusal(await batch({ atomic: true, items: [good, bad] }), 400, 'batch_failed')
      expect(refused.details!.map((detail) => detail.field)).toEqual(['items[1].fields.amount'])
      const filter = { field: 'name', op: 'eq', value: `Batch ${mark}` }
      expect((await target.live.search('deal', { filter })).body.records).toHaveLength(2)
    })

    it('creates by an external key once, then updates', async () => {
      const upsert = (fields: object) =>
        target.live.send<ApiRecord>('PUT', `/objects/company/records/by-key/key-${mark}`, { fields })
      const first = await upsert({ name: 'One', employees: 5 })
      const second = await upsert({ employees: 6 })
      expect([first.status, second.status]).toEqual([201, 200])
      expect(second.body.recordId).toBe(first.body.recordId)
      expect(second.body.fields).toMatchObject({ name: 'One', employees: 6 })
    })

    it('answers a repeated request as it did before, and does it once', async () => {
      const name = `Once ${mark}`
      const key = { 'idempotency-key': randomUUID() }
      const first = await target.live.create('deal', { fields: { name } }, key)
      const again = await target.live.create('deal', { fields: { name } }, key)
      expect([first.status, again.status]).toEqual([201, 201])
      expect(first.headers.get('idempotency-replayed')).toBeNull()
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.text).toBe(first.text)
      for (const header of ['etag', 'location']) expect(again.headers.get(header)).toBe(first.headers.get(header))
      const other = await target.live.create('deal', { fields: { name: 'Other' } }, key)
      expectRefusal(other, 409, 'idempotency_key_reused')
      const filter = { field: 'name', op: 'eq', value: name }
      expect((await target.live.search('deal', { filter })).body.records).toHaveLength(1)
    })
  })
}
