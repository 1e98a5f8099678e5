import { describe, expect, it } from 'vitest'
import { type Api, expectRefusal, send } from '../support/api.ts'
import { type UserName, userNames } from '../support/demo.ts'
import type { Target } from '../support/target.ts'

/** Every credential of demo.json does what its name says, and nothing else (contract 2). */
export function walkCredentials(target: Target): void {
  interface AuthContext {
    readonly saasAppId: string
    readonly credential: { readonly kind: string; readonly keyId: string; readonly expiresAt: string | null }
    readonly organization: { readonly organizationId: string; readonly name: string; readonly slug: string }
    readonly user: {
      readonly userId: string
      readonly displayName: string
      readonly email: string
      readonly userTypeKey: string
      readonly isOwner: boolean
    } | null
    readonly dataRoles: readonly { readonly dataRoleId: string; readonly key: string }[]
    readonly locations: 'all' | readonly string[]
    readonly scopes: readonly string[]
    readonly contractSha256: string
  }

  const search = (api: Api) => api.search('deal', { pageSize: 1 })
  const context = async (api: Api) => (await api.get<AuthContext>('/auth/context')).body

  describe('live credentials', () => {
    it('act for the organization, without a user', async () => {
      const { organization, app } = target
      expect(await context(target.live)).toStrictEqual({
        saasAppId: app.saasAppId,
        credential: { kind: 'live', keyId: organization.credentials.live.split('_')[2], expiresAt: null },
        organization: {
          organizationId: organization.organizationId,
          name: expect.any(String),
          slug: organization.slug,
        },
        user: null,
        dataRoles: [],
        locations: 'all',
        scopes: expect.arrayContaining(['records.read', 'records.write', 'logs.read']),
        contractSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      })
      expect((await search(target.live)).status).toBe(200)
    })

    it('with records.read alone read records and write none', async () => {
      const api = target.with(target.organization.credentials.liveRecordsRead)
      expect((await context(api)).scopes).toEqual(['records.read'])
      expect((await search(api)).status).toBe(200)
      const refusal = expectRefusal(await api.create('deal', { fields: { name: 'No' } }), 403, 'scope_missing')
      expect(refusal.error).toContain('records.write')
      expectRefusal(await api.get(`/logs/correlations/${refusal.correlationId}`), 403, 'scope_missing')
    })

    it('without scopes discover, and do nothing else', async () => {
      const api = target.with(target.organization.credentials.liveNoScopes)
      expect((await context(api)).scopes).toEqual([])
      expect((await api.get('/objects')).status).toBe(200)
      expect((await api.get('/openapi.json')).status).toBe(200)
      const refused = await search(api)
      expectRefusal(refused, 403, 'scope_missing')
      expect(refused.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="records.read"')
    })
  })

  describe('delegated credentials', () => {
    const expected: Record<UserName, { isOwner: boolean; roles: string[]; locations: string[] | 'all' }> = {
      owner: { isOwner: true, roles: [], locations: 'all' },
      sales: { isOwner: false, roles: ['sales'], locations: ['north'] },
      support: { isOwner: false, roles: ['support'], locations: 'all' },
      outsider: { isOwner: false, roles: [], locations: [] },
    }

    it.each(userNames)('act as %s, with the roles and locations of the membership', async (name) => {
      const { organization } = target
      const { isOwner, roles, locations } = expected[name]
      const seen = await context(target.as(name))
      expect(seen.credential.kind).toBe('dat')
      expect(Date.parse(seen.credential.expiresAt!)).toBeGreaterThan(Date.now())
      expect(seen.user).toMatchObject({ userId: organization.users[name].userId, isOwner })
      expect(seen.dataRoles).toEqual(
        roles.map((key) => ({ key, dataRoleId: organization.dataRoles[key as 'sales' | 'support'] })),
      )
      expect(seen.locations).toEqual(
        locations === 'all' ? 'all' : locations.map((key) => organization.locations[key as 'north']),
      )
      expect(seen.scopes).toContain('records.read')
    })

    it('of a member without a role show no object, and no record', async () => {
      const outsider = target.as('outsider')
      expect((await outsider.get<{ objects: unknown[] }>('/objects')).body.objects).toEqual([])
      expectRefusal(await search(outsider), 404, 'object_not_found')
    })
  })

  describe('credentials that open nothing', () => {
    it('are refused in the order of the contract', async () => {
      const { demo, organization } = target
      const refusals: readonly [string, string | undefined, number, string][] = [
        ['none', undefined, 401, 'credential_missing'],
        ['nonsense', 'ptc_live_nonsense', 401, 'credential_invalid'],
        ['mistyped', `${organization.credentials.live.slice(0, -1)}!`, 401, 'credential_invalid'],
        ['revoked', demo.revokedToken, 401, 'credential_invalid'],
        ['expired', demo.expiredToken, 401, 'credential_expired'],
        ['draft', organization.credentials.draft, 403, 'draft_credential_not_allowed'],
        ['builder', demo.builder.token, 403, 'credential_kind_not_allowed'],
        ['inactive', demo.inactiveToken, 403, 'organization_inactive'],
      ]
      for (const [name, token, status, code] of refusals) {
        const api = target.with(token)
        for (const answer of [await api.get('/auth/context'), await search(api)]) {
          expectRefusal(answer, status, code)
          const challenge = answer.headers.get('www-authenticate')
          if (status === 401) expect(challenge, name).toMatch(/^Bearer resource_metadata="http/)
        }
      }
    })

    it('are not looked for in the query string', async () => {
      const url = `${target.live.base}/auth/context?access_token=${target.organization.credentials.live}`
      expectRefusal(await send(url), 401, 'credential_missing')
    })

    it('of one application do not know another', async () => {
      const [, other] = target.demo.apps
      const api = target.with(target.organization.credentials.live, other!.saasAppId)
      expectRefusal(await api.get('/auth/context'), 404, 'application_not_found')
      const nowhere = target.with(target.organization.credentials.live, '0199a1b2-0000-7000-8000-000000000000')
      expectRefusal(await nowhere.get('/auth/context'), 404, 'application_not_found')
    })

    it('of one organization never see the records of another', async () => {
      const [ours, theirs] = target.app.organizations
      const { body } = await target.with(theirs!.credentials.live).search('company', { pageSize: 1 })
      const foreign = body.records[0]!
      const api = target.with(ours!.credentials.live)
      for (const answer of [
        await api.record('GET', foreign),
        await api.record('PATCH', foreign, '', { fields: { name: 'Ours' } }),
        await api.record('DELETE', foreign),
      ]) {
        expectRefusal(answer, 404, 'record_not_found')
      }
      const found = await api.search('company', { filter: { field: 'recordId', op: 'eq', value: foreign.recordId } })
      expect(found.body.records).toEqual([])
    })
  })
}
