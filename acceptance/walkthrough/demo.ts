import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { userNames } from '../support/demo.ts'
import type { Target } from '../support/target.ts'

/** demo.json is a contract of its own: examples, tests and benchmarks read it (contract 1). */
export function walkDemo(target: Target): void {
  const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  const token = (kind: string) => expect.stringMatching(new RegExp(`^ptc_${kind}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$`))
  const text = expect.stringMatching(/^\S+$/)

  const user = { userId: uuid, email: expect.stringMatching(/^\S+@\S+$/), password: text, token: token('dat') }

  function organization(slug: string, host: string) {
    return {
      organizationId: uuid,
      slug,
      tenantHost: `${slug}.${host}`,
      credentials: {
        live: token('live'),
        liveRecordsRead: token('live'),
        liveNoScopes: token('live'),
        draft: token('draft'),
      },
      dataRoles: { sales: uuid, support: uuid },
      locations: { north: uuid, south: uuid },
      users: { owner: user, sales: user, support: user, outsider: user },
    }
  }

  describe('the file', () => {
    it('has exactly the shape of the contract: two organizations in the first application, one in the second', () => {
      const { host } = new URL(target.demo.baseUrl)
      const tenants = host.replace('127.0.0.1', 'localhost')
      expect(target.demo).toStrictEqual({
        baseUrl: target.demo.baseUrl,
        builder: { email: expect.stringContaining('@'), password: text, token: token('bld') },
        apps: [
          {
            saasAppId: uuid,
            appKey: 'acme-crm',
            organizations: [organization('northwind', tenants), organization('contoso', tenants)],
          },
          { saasAppId: uuid, appKey: 'globex-desk', organizations: [organization('initech', tenants)] },
        ],
        inactiveToken: token('dat'),
        expiredToken: token('dat'),
        revokedToken: token('live'),
      })
    })

    it('never names the same thing twice', () => {
      const texts: string[] = []
      const walk = (value: unknown): void => {
        if (typeof value === 'string') texts.push(value)
        else if (value && typeof value === 'object') Object.values(value).forEach(walk)
      }
      walk(target.demo)
      const ids = texts.filter((value) => /^ptc_|^[0-9a-f]{8}-/.test(value))
      expect(new Set(ids).size).toBe(ids.length)
    })

    it('is readable to its owner alone', async () => {
      if (!target.dataDir) return
      expect((await stat(join(target.dataDir, 'demo.json'))).mode & 0o777).toBe(0o600)
    })

    it('leads to records of every organization', async () => {
      for (const app of target.demo.apps) {
        for (const { credentials } of app.organizations) {
          const page = await target.with(credentials.live, app.saasAppId).search('deal', { pageSize: 1 })
          expect(page.body.records).toHaveLength(1)
        }
      }
    })

    it('has people who can be told apart', async () => {
      const contexts = await Promise.all(
        userNames.map(async (name) => {
          const { body } = await target.as(name).get<{ user: { email: string } }>('/auth/context')
          return body.user.email
        }),
      )
      expect(contexts).toEqual(userNames.map((name) => target.organization.users[name].email))
    })
  })
}
