import type { Operation } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { accessProfile } from '../../shared/access/permissions.ts'
import { type Context, operation } from '../../shared/context.ts'
import { contractOperation, contractReply } from '../../shared/contract-document.ts'
import { AuthContext } from './schema.ts'

const discovery = {
  method: 'GET',
  area: 'Discovery',
  credentials: ['live', 'dat'],
  scope: null,
  rateClass: 'read',
  transaction: 'read',
  params: Strict(AppParams),
  errors: [],
} as const

const getAuthContext = operation({
  ...discovery,
  id: 'developerAuthGetContext',
  path: '/v1/apps/{saasAppId}/auth/context',
  summary: 'Read who this credential is and what it may do.',
  description: 'The identity that the service derived from the credential. Nothing in a request changes it.',
  mcp: true,
  responses: { 200: AuthContext },

  async handler({ caller, catalogue, contract, tx }) {
    const profile = accessProfile(await catalogue.modelFor(tx, caller), caller)
    return {
      status: 200,
      body: {
        saasAppId: caller.appId,
        credential: { kind: caller.credentialKind, keyId: caller.keyId, expiresAt: caller.expiresAt },
        organization: {
          organizationId: caller.organizationId,
          name: caller.organizationName,
          slug: caller.organizationSlug,
        },
        user: caller.user,
        dataRoles: caller.dataRoles,
        locations: caller.unrestricted ? 'all' : caller.locationIds,
        scopes: [...caller.scopes].sort(),
        contractSha256: contract.project(caller, profile).sha256,
      },
    }
  },
})

const getContract = operation({
  ...discovery,
  ...contractOperation,
  id: 'developerContractGet',
  path: '/v1/apps/{saasAppId}/openapi.json',
  summary: 'Read the OpenAPI document of what this credential may do.',

  async handler({ caller, catalogue, contract, tx }) {
    const profile = accessProfile(await catalogue.modelFor(tx, caller), caller)
    return contractReply(contract.project(caller, profile))
  },
})

export const discoveryOperations: readonly Operation<Context>[] = [getAuthContext, getContract]
