import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uuidv7 } from '../../../../src/kernel/ids.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../../test/support/platform.ts'
import { type BuilderRole, builderRoles } from '../../../kernel/scopes.ts'

let platform: Platform
let other: Awaited<ReturnType<Platform['startAnother']>>
beforeAll(async () => {
  platform = await startPlatform()
  other = await platform.startAnother()
})
afterAll(() => platform.stop())

interface Team {
  readonly members: { builderId: string; role: BuilderRole; lastSeenAt: string | null; totpEnabled: boolean }[]
  readonly invitations: { invitationId: string; email: string; role: BuilderRole }[]
}

const call = (by: TestBuilder, method: string, path: string, body?: unknown) =>
  platform.call(method, `/v1/platform${path}`, { token: by.token, ...(body !== undefined && { body }) })
const teamOf = async (by: TestBuilder) => (await call(by, 'GET', '/team')).json as unknown as Team
const setRole = (by: TestBuilder, { builderId }: TestBuilder, role: BuilderRole) =>
  call(by, 'PATCH', `/team/${builderId}`, { role })
const remove = (by: TestBuilder, { builderId }: TestBuilder) => call(by, 'DELETE', `/team/${builderId}`)

/** An account with a member of each role; two owners, so that neither is the last. */
async function newTeam(): Promise<Record<BuilderRole | 'secondOwner', TestBuilder>> {
  const owner = await platform.newAccount()
  const join = (role: BuilderRole) => platform.newMember(owner.accountId, role)
  const [secondOwner, admin, developer, billing] = await Promise.all([
    join('owner'),
    join('admin'),
    join('developer'),
    join('billing'),
  ])
  return { owner, secondOwner: secondOwner!, admin: admin!, developer: developer!, billing: billing! }
}

describe('what each role may do', () => {
  const everybody = [...builderRoles]
  const managers: BuilderRole[] = ['owner', 'admin']

  test.each<[string, string, unknown, readonly BuilderRole[]]>([
    ['GET', '/me', undefined, everybody],
    ['PATCH', '/me', { displayName: 'Ada' }, everybody],
    ['GET', '/sessions', undefined, everybody],
    ['GET', '/sessions?scope=account', undefined, managers],
    ['GET', '/account', undefined, everybody],
    ['PATCH', '/account', { name: 'Acme' }, managers],
    ['GET', '/team', undefined, everybody],
    ['POST', '/team/invitations', { email: 'grace@acme.example', role: 'developer' }, managers],
    ['POST', '/team/invitations', { email: 'alan@acme.example', role: 'owner' }, ['owner']],
    ['DELETE', '/sessions/current', undefined, everybody],
  ])('%s %s %j: %j', async (method, path, body, allowed) => {
    for (const role of builderRoles) {
      const team = await newTeam()
      const { status, json } = await call(team[role], method, path, body)
      if (allowed.includes(role)) expect([role, status]).toEqual([role, expect.toSatisfy((code) => code < 300)])
      else
        expect([role, status, json.code]).toEqual([
          role,
          403,
          expect.stringMatching(/^(scope_missing|permission_denied)$/),
        ])
    }
  })

  /** Who may turn whom into what, and send whom away. */
  const mayChange = (actor: BuilderRole, from: BuilderRole, to: BuilderRole | null) =>
    actor === 'owner' || (actor === 'admin' && from !== 'owner' && to !== 'owner')

  test.each(builderRoles)('a member who is %s makes of others what the role allows', async (actor) => {
    for (const from of builderRoles) {
      const team = await newTeam()
      const target = from === 'owner' ? team.secondOwner : await platform.newMember(team.owner.accountId, from)
      for (const to of builderRoles) {
        const { status } = await setRole(team[actor], target, to)
        expect([from, to, status]).toEqual([from, to, mayChange(actor, from, to) ? 200 : 403])
        if (status === 200) await setRole(team.owner, target, from)
      }
      const { status } = await remove(team[actor], target)
      expect([from, 'removed', status]).toEqual([from, 'removed', mayChange(actor, from, null) ? 200 : 403])
      const left = (await teamOf(team.owner)).members.some(({ builderId }) => builderId === target.builderId)
      expect(left).toBe(status !== 200)
    }
  })
})

describe('a change of the team', () => {
  test('of a role holds on the next request of every process', async () => {
    const { owner, admin } = await newTeam()
    const rename = (name: string) => other.call('PATCH', '/v1/platform/account', { token: admin.token, body: { name } })
    expect((await rename('Before')).status).toBe(200)
    await setRole(owner, admin, 'billing')
    expect((await rename('After')).json.code).toBe('scope_missing')
    const me = await other.call('GET', '/v1/platform/me', { token: admin.token })
    expect(me.json).toMatchObject({ role: 'billing', scopes: ['account.read', 'applications.read', 'billing.read'] })
    await setRole(owner, admin, 'admin')
    expect((await rename('Again')).status).toBe(200)
  })

  test('that removes a member ends the sessions, also for the day of return', async () => {
    const { owner, developer } = await newTeam()
    const { status, json } = await remove(owner, developer)
    expect(status).toBe(200)
    expect(json).toMatchObject({ builderId: developer.builderId, role: 'developer' })
    const me = () => other.call('GET', '/v1/platform/me', { token: developer.token })
    expect((await me()).json.code).toBe('credential_invalid')
    await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: `INSERT INTO portico.account_member (account_id, builder_id, role) VALUES ($1, $2, 'developer')`,
        values: [owner.accountId, developer.builderId],
      }),
    )
    expect((await me()).json.code).toBe('credential_invalid')
    expect((await remove(owner, { ...developer, builderId: uuidv7(0) })).json.code).toBe('member_not_found')
  })

  test('is in the audit log with what it was before and after', async () => {
    const { owner, developer } = await newTeam()
    await setRole(owner, developer, 'admin')
    await setRole(owner, developer, 'admin')
    await remove(owner, developer)
    const entries = await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: `SELECT action, actor_id, target_id, before ->> 'role' AS before, after ->> 'role' AS after
          FROM portico.audit_entry WHERE account_id = $1 ORDER BY entry_id`,
        values: [owner.accountId],
      }),
    )
    const who = { actor_id: owner.builderId, target_id: developer.builderId }
    expect(entries).toEqual([
      { action: 'member.updated', ...who, before: 'developer', after: 'admin' },
      { action: 'member.removed', ...who, before: 'admin', after: null },
    ])
  })

  test('never takes the last owner', async () => {
    const owner = await platform.newAccount()
    for (const answer of [await setRole(owner, owner, 'admin'), await remove(owner, owner)]) {
      expect([answer.status, answer.json.code]).toEqual([409, 'last_owner'])
    }
    expect((await setRole(owner, owner, 'owner')).status).toBe(200)
  })

  test('that waits for another one is held against what its caller may do by then', async () => {
    const { owner, admin, billing } = await newTeam()
    const { database } = platform.db
    const waiting = { text: 'SELECT FROM pg_locks WHERE NOT granted', values: [] }
    const { answer } = await database.as('portico_owner', async (tx) => {
      await tx.rows({
        text: 'SELECT FROM portico.account WHERE account_id = $1 FOR UPDATE',
        values: [owner.accountId],
      })
      const promotion = setRole(admin, billing, 'admin')
      while ((await tx.rows(waiting)).length === 0) await setTimeout(5)
      await tx.rows({
        text: `UPDATE portico.account_member SET role = 'developer' WHERE builder_id = $1`,
        values: [admin.builderId],
      })
      await tx.rows({ text: 'SELECT portico.bump_epoch($1)', values: [owner.accountId] })
      return { answer: promotion }
    })
    expect((await answer).json.code).toBe('scope_missing')
    const { members } = await teamOf(owner)
    expect(members.find(({ builderId }) => builderId === billing.builderId)?.role).toBe('billing')
  })

  test.each(['demote', 'remove'] as const)('owners who %s each other at once leave one of them', async (what) => {
    for (let round = 0; round < 8; round++) {
      const one = await platform.newAccount()
      const two = await platform.newMember(one.accountId, 'owner')
      const clients = [platform, other]
      const answers = await Promise.all(
        [
          [one, two],
          [two, one],
        ].map(([by, whom], i) =>
          what === 'demote'
            ? clients[i]!.call('PATCH', `/v1/platform/team/${whom!.builderId}`, {
                token: by!.token,
                body: { role: 'billing' },
              })
            : clients[i]!.call('DELETE', `/v1/platform/team/${whom!.builderId}`, { token: by!.token }),
        ),
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      const owners = await platform.db.database.as('portico_owner', (tx) =>
        tx.rows({
          text: `SELECT FROM portico.account_member WHERE account_id = $1 AND role = 'owner'`,
          values: [one.accountId],
        }),
      )
      expect(owners).toHaveLength(1)
    }
  })
})

describe('another account', () => {
  test('has no members, sessions or invitations as far as this one is concerned', async () => {
    const mine = await newTeam()
    const theirs = await newTeam()
    const invited = await call(theirs.owner, 'POST', '/team/invitations', { email: 'eve@evil.example', role: 'admin' })
    const answers = await Promise.all([
      setRole(mine.owner, theirs.developer, 'billing'),
      remove(mine.owner, theirs.developer),
      call(mine.owner, 'DELETE', `/team/invitations/${invited.json['invitationId']}`),
    ])
    expect(answers.map(({ status, json }) => [status, json.code])).toEqual([
      [404, 'member_not_found'],
      [404, 'member_not_found'],
      [404, 'invitation_not_found'],
    ])
    const seen = await call(mine.owner, 'GET', '/team')
    const foreign = [...Object.values(theirs).flatMap(({ builderId, email }) => [builderId, email]), 'eve@evil.example']
    for (const name of foreign) expect(seen.text).not.toContain(name)
    expect((await teamOf(theirs.owner)).members.map(({ role }) => role).sort()).toEqual([
      'admin',
      'billing',
      'developer',
      'owner',
      'owner',
    ])
    expect((await teamOf(theirs.owner)).invitations).toHaveLength(1)
  })
})

test('a name that somebody changes is what the team sees, and is in the audit log', async () => {
  const { owner, developer } = await newTeam()
  const { json } = await call(developer, 'PATCH', '/me', { displayName: 'Ada Lovelace' })
  expect(json).toMatchObject({ builder: { displayName: 'Ada Lovelace', email: developer.email }, role: 'developer' })
  const { members } = (await call(owner, 'GET', '/team')).json as unknown as { members: { displayName: string }[] }
  expect(members.map(({ displayName }) => displayName)).toContain('Ada Lovelace')
  const { items } = (await call(owner, 'GET', '/audit')).json as unknown as { items: unknown[] }
  expect(items).toMatchObject([
    {
      action: 'builder.updated',
      actor: { id: developer.builderId },
      before: { displayName: 'Test builder' },
      after: { displayName: 'Ada Lovelace' },
    },
  ])
  for (const displayName of ['', ' ', 'two\nlines']) {
    const refused = await call(developer, 'PATCH', '/me', { displayName })
    expect(refused.json.details).toMatchObject([{ field: 'displayName' }])
  }
})

describe('the account', () => {
  test('is changed at the revision that was expected, and keeps it when nothing changes', async () => {
    const owner = await platform.newAccount()
    const patch = (body: unknown, ifMatch?: string) =>
      platform.call('PATCH', '/v1/platform/account', { token: owner.token, body, headers: { 'if-match': ifMatch } })
    const first = await call(owner, 'GET', '/account')
    expect(first.json).toMatchObject({ name: 'Test account', billingEmail: owner.email, planKey: 'free', revision: 1 })
    expect(first.headers.etag).toBe('"1"')
    expect((await patch({ name: 'Acme', expectedRevision: 1 })).json).toMatchObject({ name: 'Acme', revision: 2 })
    expect((await patch({ name: 'Acme' }, '"2"')).json['revision']).toBe(2)
    expect((await patch({ billingEmail: null }, '"2"')).json).toMatchObject({ billingEmail: null, revision: 3 })
    for (const stale of [await patch({ name: 'Late', expectedRevision: 2 }), await patch({ name: 'Late' }, '"2"')]) {
      expect([stale.status, stale.json.code]).toEqual([409, 'revision_conflict'])
      expect(stale.json.details).toMatchObject([{ message: 'The current revision is 3.' }])
    }
    expect((await patch({ billingEmail: 'nowhere' })).json.details).toMatchObject([{ field: 'billingEmail' }])
  })
})
