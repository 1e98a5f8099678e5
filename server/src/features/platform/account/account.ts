import type { Reply } from '../../../kernel/operation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { platformOperation } from '../../../shared/platform-context.ts'
import { requireRevision } from '../../../shared/records/input.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const account = {
  area: 'Account',
  path: '/v1/platform/account',
  credentials: ['bld'],
  params: schema.NoParams,
  responses: { 200: schema.Account },
  responseHeaders: {
    ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' },
  },
  mcp: false,
} as const

const replyOf = (body: schema.Account): Reply => ({ status: 200, body, headers: { etag: `"${body.revision}"` } })

export const getAccount = platformOperation({
  ...account,
  id: 'developerPlatformAccountGet',
  method: 'GET',
  summary: 'Read the account.',
  description: 'Its name, where its invoices go, and its plan.',
  scope: 'account.read',
  rateClass: 'read',
  transaction: 'read',
  errors: [],

  handler: async ({ tx, caller }) => replyOf(await store.findAccount(tx, caller)),
})

export const updateAccount = platformOperation({
  ...account,
  id: 'developerPlatformAccountUpdate',
  method: 'PATCH',
  summary: 'Change the name of the account, or where its invoices go.',
  description: 'What the body does not name stays. A change that changes nothing keeps the revision.',
  scope: 'account.manage',
  rateClass: 'write',
  transaction: 'write',
  body: schema.UpdateAccountBody,
  ifMatch: true,
  errors: ['revision_conflict'],

  async handler(context, { body, ifMatch }) {
    const { tx, caller } = context
    await store.lockAccount(tx, caller)
    const before = await store.findAccount(tx, caller)
    requireRevision(before.revision, body.expectedRevision, ifMatch)
    const { name = before.name, billingEmail = before.billingEmail } = body
    if (name === before.name && billingEmail === before.billingEmail) return replyOf(before)
    await store.updateAccount(tx, { accountId: caller.accountId, name, billingEmail })
    const after = await store.findAccount(tx, caller)
    await recordAudit(context, {
      action: 'account.updated',
      target: { type: 'account', id: caller.accountId },
      before,
      after,
    })
    return replyOf(after)
  },
})
