import { type Operation, RawBody } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { accessProfile } from '../../shared/access/permissions.ts'
import { type Context, operation } from '../../shared/context.ts'
import { AuthContext, ContractDocument } from './schema.ts'

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
  id: 'developerContractGet',
  path: '/v1/apps/{saasAppId}/openapi.json',
  summary: 'Read the OpenAPI document of what this credential may do.',
  description:
    'The body is canonical (RFC 8785): its SHA-256 is the fingerprint. Pin it, and regenerate clients when it changes. ' +
    'A document that shows an operation is no permission to invoke it.',
  mcp: false, // a model discovers tools through MCP itself; this document would only fill its context
  responses: { 200: ContractDocument },
  responseHeaders: {
    'X-Service-Contract-SHA256': {
      description: 'The fingerprint of the whole projected contract: 64 lowercase hex characters.',
      example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    },
    ETag: { description: 'The same fingerprint as a strong tag.', example: '"9f86d081…0a08"' },
    'Cache-Control': { description: 'Always `private, no-store`.', example: 'private, no-store' },
  },

  async handler({ caller, catalogue, contract, tx }) {
    const profile = accessProfile(await catalogue.modelFor(tx, caller), caller)
    const { text, sha256 } = contract.project(caller, profile)
    return {
      status: 200,
      body: new RawBody(text, 'application/json; charset=utf-8'),
      headers: { 'x-service-contract-sha256': sha256, etag: `"${sha256}"`, 'cache-control': 'private, no-store' },
    }
  },
})

export const discoveryOperations: readonly Operation<Context>[] = [getAuthContext, getContract]
