import type { BuilderCaller } from '../../kernel/caller.ts'
import type { Operation } from '../../kernel/operation.ts'
import type { BuilderRole } from '../../kernel/scopes.ts'
import { type Contract, commonRules, isOpenTo, writeContract } from './contract.ts'
import { titlesOf } from './json-schema.ts'
import { createProjection } from './projection.ts'

const description = `What the members of a builder account do: applications and their models, customer organizations and their people,
credentials, billing and the audit log. This document is made for the role of the member who asked for it.

Sign in with \`POST /v1/platform/sessions\` and send the token as \`Authorization: Bearer <token>\`.
${commonRules}`

/**
 * The contract of `/v1/platform`: what needs no credential, and what the role of the member who asks could ever invoke.
 * Nothing else enters it, so the members of all accounts share one document for each role.
 */
export function createPlatformContract(
  operations: readonly Operation<never>[],
  baseUrl: string,
): (caller: Pick<BuilderCaller, 'credentialKind' | 'role' | 'scopes'>) => Contract {
  const made = new Map<BuilderRole, Contract>()
  return (caller) => {
    const known = made.get(caller.role)
    if (known) return known
    const contract = writeContract({
      title: 'Portico platform',
      description,
      operations: operations.filter((one) => one.credentials.includes('none') || isOpenTo(one, caller)),
      projection: createProjection(null, [], titlesOf(operations)),
      baseUrl,
    })
    made.set(caller.role, contract)
    return contract
  }
}
