import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ApiError, type ApiRecord, expectRefusal } from '../support/api.ts'
import type { UserName } from '../support/demo.ts'
import type { Target } from '../support/target.ts'

/** Who sees and may do what (data.md): rows by the envelope, objects and fields by the DataRole. */
export function walkPermissions(target: Target): void {
  const mark = randomUUID().slice(0, 8)
  const deals: Record<string, ApiRecord> = {}

  beforeAll(async () => {
    const { dataRoles, locations, users } = target.organization
    const placements = {
      everybody: {},
      ofSales: { ownerUserId: users.sales.userId },
      ofOwner: { ownerUserId: users.owner.userId },
      shared: { ownerUserId: users.owner.userId, participants: [users.support.userId] },
      salesNorth: { dataRoleId: dataRoles.sales, locationId: locations.north },
      salesSouth: { dataRoleId: dataRoles.sales, locationId: locations.south },
      salesAnywhere: { dataRoleId: dataRoles.sales },
      support: { dataRoleId: dataRoles.support, locationId: locations.south },
    }
    for (const [name, placement] of Object.entries(placements)) {
      const fields = { name: `${name} ${mark}`, amount: '4711.17', stage: 'open' }
      const { status, body, text } = await target.live.create('deal', { fields, ...placement })
      expect(status, text).toBe(201)
      deals[name] = body
    }
  })

  describe('records', () => {
    const expected: Record<Exclude<UserName, 'outsider'>, string[]> = {
      owner: ['everybody', 'ofOwner', 'ofSales', 'salesAnywhere', 'salesNorth', 'salesSouth', 'shared', 'support'],
      sales: ['everybody', 'ofSales', 'salesAnywhere', 'salesNorth'],
      support: ['everybody', 'shared', 'support'],
    }

    it.each(['owner', 'sales', 'support'] as const)(
      'of the envelope, and no others, are there for %s',
      async (name) => {
        const api = target.as(name)
        const filter = { field: 'name', op: 'endsWith', value: ` ${mark}` }
        const { body } = await api.search('deal', { filter, sort: 'name_asc', includeTotal: true })
        const seen = body.records.map((record) => record.displayName!.split(' ')[0])
        expect(seen).toEqual(expected[name])
        expect(body.totalRecords).toBe(seen.length)
        const counted = await api.send<{ totalRecords: number }>('POST', '/objects/deal/records/count', { filter })
        expect(counted.body.totalRecords).toBe(seen.length)
        const found = await api.search('deal', { search: mark, sort: 'name_asc' })
        expect(found.body.records.map((record) => record.recordId)).toEqual(
          body.records.map((record) => record.recordId),
        )
      },
    )

    it('outside of it answer like records that do not exist', async () => {
      const api = target.as('sales')
      const absent = { ...deals['ofOwner']!, recordId: randomUUID() }
      for (const record of [deals['ofOwner']!, deals['salesSouth']!, absent]) {
        expectRefusal(await api.record('GET', record), 404, 'record_not_found')
        expectRefusal(await api.record('GET', record, '/history'), 404, 'record_not_found')
        expectRefusal(await api.record('PATCH', record, '', { fields: { stage: 'won' } }), 404, 'record_not_found')
        expectRefusal(await api.record('DELETE', record), 404, 'record_not_found')
      }
    })

    it('cannot be given away to where one may not write, nor be made there', async () => {
      const api = target.as('sales')
      const { users, dataRoles } = target.organization
      const give = await api.record('PATCH', deals['ofSales']!, '', { ownerUserId: users.owner.userId })
      expectRefusal(give, 403, 'permission_denied')
      const make = await api.create('deal', { fields: { name: `Made ${mark}` }, dataRoleId: dataRoles.support })
      expectRefusal(make, 403, 'permission_denied')
    })
  })

  describe('the support role', () => {
    const amount = '4711.17'

    it('never meets the amount of a deal: not in lists, records, schemas, history or the contract', async () => {
      const api = target.as('support')
      const shared = deals['shared']!
      await target.live.record('PATCH', shared, '', { fields: { amount: '4712.17', notes: 'called' } })
      const answers = [
        await api.search('deal', { search: mark }),
        await api.record('GET', shared),
        await api.record('GET', shared, '/history'),
        await api.get('/objects/deal/schema'),
      ]
      for (const { status, text } of answers) {
        expect(status).toBe(200)
        expect(text).not.toContain('amount')
        expect(text).not.toMatch(/471[12]\.17/)
      }
      expect((await api.get('/openapi.json')).text).not.toMatch(/"amount":\{/)
      expect((await target.as('owner').get('/objects/deal/schema')).text).toContain('amount')
    })

    it('cannot ask about it either: the field is one that does not exist', async () => {
      const api = target.as('support')
      // Everything but the name that was asked for must be alike.
      const told = (refusal: ApiError, name: string) =>
        JSON.stringify({ ...refusal, correlationId: '' }).replaceAll(name, '…')
      const ask = async (field: string) => {
        const answer = await api.search('deal', { filter: { field, op: 'eq', value: amount } })
        return told(expectRefusal(answer, 400, 'unknown_field'), field)
      }
      const sortBy = async (field: string) => {
        const answer = await api.search('deal', { sort: `${field}_desc` })
        return told(expectRefusal(answer, 400, 'sort_invalid'), field)
      }
      expect(await ask('amount')).toBe(await ask('nothing'))
      expect(await sortBy('amount')).toBe(await sortBy('nothing'))
      expectRefusal(await api.search('deal', { fields: ['amount'] }), 400, 'unknown_field')
      // Nor does a misspelling lead there.
      expect(await ask('amuont')).not.toContain('amount')
      expect(await sortBy('amuont')).not.toContain('amount')
    })

    it('reads, and changes nothing', async () => {
      const api = target.as('support')
      const shared = deals['shared']!
      expect((await api.record('GET', shared)).body.access).toEqual({ canUpdate: false, canArchive: false })
      expectRefusal(await api.record('PATCH', shared, '', { fields: { stage: 'won' } }), 403, 'permission_denied')
      expectRefusal(await api.record('DELETE', shared), 403, 'permission_denied')
      expectRefusal(await api.create('deal', { fields: { name: `No ${mark}` } }), 403, 'permission_denied')
      const after = await target.live.record('GET', shared)
      expect([after.body.fields['stage'], after.body.archivedAt]).toEqual(['open', null])
    })
  })
}
