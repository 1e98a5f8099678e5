import { hash } from '@node-rs/argon2'
import { insertSession, revokeSessions } from '../../src/features/tenant-sessions/store.ts'
import { allScopes } from '../../src/kernel/scopes.ts'
import { createMint } from '../../src/shared/identity/mint.ts'
import type { TestDatabase } from './database.ts'
import type { Answer, HttpClient, Sent } from './http-client.ts'
import { pepper, type TestOrganization } from './tenants.ts'

/** What a test needs at the door of a tenant: passwords for users who have none, sessions, and requests with a cookie. */
export const cookieName = 'portico_session'
export const password = 'correct horse battery staple'

/** Cheaper than the service's own: it verifies them, and replaces them at the next sign-in. */
export const outdated = { memoryCost: 1024, timeCost: 1, parallelism: 1 }

export async function setPassword(
  { database }: TestDatabase,
  organizationId: string,
  userId: string,
  text = password,
): Promise<void> {
  const values = [await hash(text, outdated), organizationId, userId]
  await database.inOrganization(organizationId, (tx) =>
    tx.rows({
      text: `UPDATE portico.tenant_user SET password_hash = $1 WHERE organization_id = $2 AND user_id = $3`,
      values,
    }),
  )
}

/** The token of a session that was opened in an earlier moment; good for an hour unless said otherwise. */
export async function openSession(
  { database }: TestDatabase,
  { appId }: { readonly appId: string },
  { organizationId }: Pick<TestOrganization, 'organizationId'>,
  { userId }: { readonly userId: string },
  state: { readonly expiresAt?: Date; readonly createdAt?: Date; readonly revoked?: boolean } = {},
): Promise<string> {
  const { createdAt = new Date(), expiresAt = new Date(Date.now() + 3_600_000), revoked = false } = state
  const { keyId, secretHash, text } = createMint(pepper).token('ses')
  const times = { createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() }
  const client = { userAgent: 'A browser', address: '127.0.0.1' }
  await database.inOrganization(organizationId, async (tx) => {
    const session = { organizationId, appId, userId, keyId, secretHash, scopes: allScopes, ...client, ...times }
    await insertSession(tx, session)
    if (revoked) await revokeSessions(tx, { organizationId, userId, only: keyId, at: times.createdAt })
  })
  return text
}

export interface Visit extends Sent {
  /** The session, sent as the cookie. */
  readonly session?: string | undefined
}

/** Sends requests to the host of an organisation. */
export function onHost(client: Pick<HttpClient, 'call'>, host: string) {
  return function ask<T = Readonly<Record<string, unknown>>>(
    method: string,
    path: string,
    { session, headers, ...sent }: Visit = {},
  ): Promise<Answer<T>> {
    const cookie = session === undefined ? {} : { cookie: `${cookieName}=${session}` }
    return client.call<T>(method, path, { ...sent, headers: { host, ...cookie, ...headers } })
  }
}

export function hostOf({ slug }: { readonly slug: string }): string {
  return `${slug}.localhost:8080`
}

/** The token that an answer leaves in the cookie; empty where it removes it. */
export function tokenOf({ headers }: Pick<Answer<unknown>, 'headers'>): string {
  const [value = ''] = headers['set-cookie'] ?? []
  return /^portico_session=([^;]*);/.exec(value)?.[1] ?? 'no cookie was set'
}
