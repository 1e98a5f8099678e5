import type { Static } from 'typebox'
import { fail } from '../../kernel/errors.ts'
import { momentOf } from '../../kernel/moment.ts'
import type { Credential, IssueBody } from './schema.ts'
import type { CredentialRow } from './store.ts'

/** Throws unless the parts of an order for a credential fit each other. What each part may be has been validated. */
export function requireConsistent(body: Static<typeof IssueBody>, now: number): void {
  if (body.expiresAt !== undefined && momentOf(body.expiresAt, 'expiresAt') <= now) {
    throw fail('validation_failed', { field: 'expiresAt', message: 'Must be in the future.' })
  }
  if (body.kind !== 'draft') return
  const wrong = body.scopes.findIndex((scope) => scope !== 'pages.draft')
  if (wrong >= 0) {
    throw fail('validation_failed', {
      field: `scopes[${wrong}]`,
      message: 'A draft credential can only have the scope pages.draft.',
    })
  }
  if (body.envelope) {
    throw fail('validation_failed', { field: 'envelope', message: 'A draft credential has no envelope.' })
  }
}

/** The credential as the API shows it at `now`, in milliseconds. */
export function credentialOf(row: CredentialRow, now: number): Static<typeof Credential> {
  const { revokedAt, expiresAt, previousSecretExpiresAt, hasEnvelope, dataRoleIds, allLocations, locationIds } = row
  return {
    keyId: row.keyId,
    kind: row.kind,
    displayName: row.displayName,
    tokenHint: `ptc_${row.kind}_${row.keyId}_…`,
    scopes: row.scopes,
    envelope: hasEnvelope ? { dataRoleIds, locations: allLocations ? 'all' : locationIds } : null,
    status: revokedAt !== null ? 'revoked' : isPast(expiresAt, now) ? 'expired' : 'active',
    createdAt: row.createdAt,
    // The demo issues credentials without a builder.
    createdBy: row.createdBy === null ? { kind: 'system', id: 'demo' } : { kind: 'builder', id: row.createdBy },
    rotatedAt: row.rotatedAt,
    expiresAt,
    lastUsedAt: row.lastUsedAt,
    previousSecretExpiresAt: isPast(previousSecretExpiresAt, now) ? null : previousSecretExpiresAt,
    revokedAt,
  }
}

function isPast(moment: string | null, now: number): boolean {
  return moment !== null && Date.parse(moment) <= now
}
