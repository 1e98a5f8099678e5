import type { Account, GoodRequest } from './platform-account.ts'
import * as make from './platform-things.ts'

/**
 * A request for each operation of `/v1/platform` that works. Whoever uses one up, for instance a session that is revoked,
 * makes a new one for it; what only has to be there is made once.
 */
export const platformRequests: Readonly<Record<string, (account: Account) => GoodRequest | Promise<GoodRequest>>> = {
  developerPlatformContractGet: () => ({}),

  developerPlatformCredentialsList: async (account) => {
    await make.credentialParams(account)
    return { params: await make.organizationParams(account) }
  },
  developerPlatformCredentialsIssue: async (account) => ({
    params: await make.organizationParams(account),
    body: await make.credentialBody(account),
    status: 201,
  }),
  developerPlatformCredentialsRotate: async (account) => ({
    params: await make.credentialParams(account, 'new'),
    body: { overlapSeconds: 60 },
  }),
  developerPlatformCredentialsRevoke: async (account) => ({ params: await make.credentialParams(account, 'new') }),

  developerPlatformBillingGetCatalog: () => ({}),
  developerPlatformBillingGetResources: async (account) => ({ query: `saasAppId=${await make.application(account)}` }),
  developerPlatformMarketplaceListEntitlements: async (account) => {
    await make.entitlement(account)
    return {}
  },
  developerPlatformAuditList: async (account) => ({ query: `saasAppId=${await make.application(account)}` }),

  developerPlatformOrganizationsList: async (account) => {
    await make.organization(account)
    return { params: { saasAppId: await make.application(account) } }
  },
  developerPlatformOrganizationsCreate: async (account) => ({
    params: { saasAppId: await make.application(account) },
    body: make.organizationBody(account),
    status: 201,
  }),
  developerPlatformOrganizationsGet: async (account) => ({ params: await make.organizationParams(account) }),
  developerPlatformOrganizationsUpdate: async (account) => ({
    params: await make.organizationParams(account),
    body: { name: account.name('organization'), billingEmail: account.mail('billing'), status: 'active' },
  }),
  developerPlatformLocationsPut: async (account) => ({
    params: { ...(await make.organizationParams(account)), locationKey: account.key('place') },
    body: { name: account.name('location') },
    status: 201,
  }),

  developerPlatformUsersList: async (account) => {
    await make.userParams(account)
    return { params: await make.organizationParams(account) }
  },
  developerPlatformUsersCreate: async (account) => ({
    params: await make.organizationParams(account),
    body: { email: account.mail('user'), displayName: account.name('user'), ...(await make.membership(account)) },
    status: 201,
  }),
  developerPlatformUsersGet: async (account) => ({ params: await make.userParams(account) }),
  developerPlatformUsersUpdate: async (account) => ({
    params: await make.userParams(account),
    body: { email: account.mail('user'), displayName: account.name('user'), ...(await make.membership(account)) },
  }),

  developerPlatformInvitationsList: async (account) => {
    await make.invitationParams(account)
    return { params: await make.organizationParams(account) }
  },
  developerPlatformInvitationsCreate: async (account) => ({
    params: await make.organizationParams(account),
    body: { email: account.mail('guest'), displayName: account.name('guest'), ...(await make.membership(account)) },
    status: 201,
  }),
  developerPlatformInvitationsResend: async (account) => ({ params: await make.invitationParams(account, 'new') }),
  developerPlatformInvitationsRevoke: async (account) => ({ params: await make.invitationParams(account, 'new') }),
}
