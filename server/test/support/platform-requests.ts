import { type Account, type GoodRequest, type PlatformOperation, password } from './platform-account.ts'
import * as model from './platform-models.ts'
import * as make from './platform-things.ts'

type Request = (account: Account) => GoodRequest | Promise<GoodRequest>

/**
 * A request for each operation of `/v1/platform` that works. Whoever uses one up, for instance a session that is revoked,
 * makes a new one for it; what only has to be there is made once.
 */
export const platformRequests: Readonly<Record<string, Request>> = {
  developerPlatformSessionsCreate: ({ email, accountId, name }) => ({
    body: { email, password, accountId, label: name('session') },
    status: 201,
  }),
  developerPlatformPasswordResetsCreate: ({ email }) => ({ body: { email }, status: 202 }),
  developerPlatformPasswordResetsComplete: async (account) => ({ body: await make.passwordResetBody(account) }),
  developerPlatformTeamInvitationsAccept: async (account) => ({
    body: await make.acceptanceBody(account),
    status: 201,
  }),

  developerPlatformContractGet: () => ({}),
  developerPlatformSessionsList: () => ({}),
  developerPlatformSessionsRevoke: async (account) => ({ params: { sessionId: await make.sessionId(account) } }),
  developerPlatformMeGet: () => ({}),
  developerPlatformMeUpdate: ({ name }) => ({ body: { displayName: name('builder') } }),
  developerPlatformMeChangePassword: async (account) => ({
    token: (await account.freshMember()).token,
    body: { currentPassword: password, newPassword: password },
  }),
  developerPlatformMeTotpEnroll: async (account) => ({
    token: (await account.freshMember()).token,
    body: { password },
  }),
  developerPlatformMeTotpConfirm: async (account) => {
    const { member, code } = await make.enrolled(account)
    return { token: member.token, body: { code } }
  },
  developerPlatformMeTotpRemove: async (account) => {
    const { member, code } = await make.secured(account)
    return { token: member.token, body: { password, code } }
  },

  developerPlatformAccountGet: () => ({}),
  developerPlatformAccountUpdate: ({ name, mail }) => ({
    body: { name: name('account'), billingEmail: mail('billing') },
  }),
  developerPlatformTeamGet: () => ({}),
  developerPlatformTeamUpdateMember: async (account) => ({
    params: { builderId: await make.colleagueId(account) },
    body: { role: 'billing' },
  }),
  developerPlatformTeamRemoveMember: async (account) => ({
    params: { builderId: await make.colleagueId(account, 'new') },
  }),
  developerPlatformTeamInvitationsCreate: ({ mail }) => ({
    body: { email: mail('colleague'), role: 'developer' },
    status: 201,
  }),
  developerPlatformTeamInvitationsRevoke: async (account) => ({
    params: { invitationId: await make.teamInvitationId(account) },
  }),

  developerPlatformApplicationsList: async (account) => {
    await model.application(account)
    return {}
  },
  developerPlatformApplicationsCreate: (account) => ({ body: model.applicationBody(account), status: 201 }),
  developerPlatformApplicationsGet: async (account) => ({ params: { saasAppId: await model.application(account) } }),
  developerPlatformApplicationsUpdate: async (account) => ({
    params: { saasAppId: await model.application(account) },
    body: { name: account.name('app'), description: account.name('description') },
  }),
  developerPlatformApplicationsArchive: async (account) => ({
    params: { saasAppId: await model.application(account, 'new') },
  }),

  developerPlatformModelDraftGet: async (account) => ({
    params: { saasAppId: (await model.objectParams(account)).saasAppId },
  }),
  developerPlatformModelDraftPut: async (account) => ({
    params: { saasAppId: await model.application(account, 'new') },
    body: { document: model.modelDocument(account) },
  }),
  developerPlatformModelDraftDiscard: async (account) => ({
    params: { saasAppId: await model.draftedApplication(account) },
  }),
  developerPlatformModelObjectsPut: async (account) => ({
    params: { saasAppId: await model.application(account), objectKey: account.key('thing') },
    body: { object: model.objectBody(account) },
  }),
  developerPlatformModelObjectsRemove: async (account) => ({ params: await model.objectParams(account, 'new') }),
  developerPlatformModelFieldsPut: async (account) => ({
    params: { ...(await model.objectParams(account)), fieldKey: model.fieldKey(account) },
    body: { field: { label: account.name('field'), dataType: 'text' } },
  }),
  developerPlatformModelFieldsRemove: async (account) => ({ params: await model.fieldParams(account) }),
  developerPlatformModelPartsPut: async (account) => ({
    params: { saasAppId: await model.application(account), partKind: 'roles', partKey: account.key('role') },
    body: { part: { label: account.name('role'), objects: {} } },
  }),
  developerPlatformModelPartsRemove: async (account) => ({ params: await model.partParams(account) }),
  developerPlatformModelDraftValidate: async (account) => ({
    params: { saasAppId: (await model.objectParams(account)).saasAppId },
  }),
  developerPlatformModelDraftDiff: async (account) => ({
    params: { saasAppId: (await model.objectParams(account)).saasAppId },
  }),
  developerPlatformModelDraftPublish: async (account) => ({
    params: { saasAppId: await model.draftedApplication(account) },
    body: { note: account.name('release') },
    status: 201,
  }),
  developerPlatformModelReleasesList: async (account) => ({ params: { saasAppId: await model.application(account) } }),
  developerPlatformModelReleasesGet: async (account) => ({
    params: { saasAppId: await model.application(account), releaseNumber: '1' },
  }),
  developerPlatformModelReleasesRollback: async (account) => ({
    params: { saasAppId: await model.releasedApplication(account), releaseNumber: '1' },
    body: { note: account.name('release') },
    status: 201,
  }),

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
  developerPlatformBillingGetResources: async (account) => ({ query: `saasAppId=${await model.application(account)}` }),
  developerPlatformMarketplaceListEntitlements: async (account) => {
    await make.entitlement(account)
    return {}
  },
  developerPlatformAuditList: async (account) => ({ query: `saasAppId=${await model.application(account)}` }),

  developerPlatformOrganizationsList: async (account) => {
    await make.organization(account)
    return { params: { saasAppId: await model.application(account) } }
  },
  developerPlatformOrganizationsCreate: async (account) => ({
    params: { saasAppId: await model.application(account) },
    body: make.organizationBody(account),
    status: 201,
  }),
  developerPlatformOrganizationsGet: async (account) => ({ params: await make.organizationParams(account) }),
  developerPlatformOrganizationsUpdate: async (account) => ({
    params: await make.organizationParams(account),
    body: { name: account.name('organization'), billingEmail: account.mail('billing'), status: 'active' },
  }),
  developerPlatformDomainsVerify: async (account) => ({ params: await make.verifiableParams(account) }),
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

export async function goodRequest(operation: PlatformOperation, account: Account): Promise<GoodRequest> {
  const request = platformRequests[operation.id]
  if (!request) throw new Error(`There is no good request for ${operation.id}: add a line to platformRequests.`)
  return request(account)
}
