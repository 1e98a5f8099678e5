import { isIPv6 } from 'node:net'
import sql from 'sql-template-tag'
import type { Caller, TenantVisitor, Visitor } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { Identity, Request } from '../../kernel/exchange.ts'
import type { Database } from '../database/database.ts'
import type { Links } from '../links.ts'
import type { Authenticator } from './authenticate.ts'

/** Somebody without a credential, on the API host. */
export function visitorOf({ address }: Pick<Request, 'address'>): Identity<Visitor> {
  const network = networkOf(address)
  const actor = { kind: 'visitor', id: network } as const
  const nobody = { appId: null, tenantId: network, keyId: '', scopes: new Set<string>() }
  return { caller: { credentialKind: 'none', ...nobody, actor, address }, refusal: null }
}

/** What one client can be taken to own: an IPv4 address, or an IPv6 network of 64 bits (RFC 6177). */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - groups.length - rest.length }, () => '0')
  const whole = [...groups, ...zeros, ...rest].map((group) => group.replace(/^0+(?=.)/, ''))
  return `${whole.slice(0, 4).join(':')}::/64`
}

interface HostRow {
  readonly organization_id: string
  readonly app_id: string
  readonly name: string
  readonly slug: string
  readonly status: 'active' | 'inactive'
  readonly archived: boolean
}

/** Says who stands at the door of a tenant host, with a session and without one. */
export function createTenantDoor(parts: {
  readonly database: Database
  readonly authenticator: Authenticator
  readonly links: Links
}) {
  const { database, authenticator, links } = parts
  const suffix = links.tenantOrigin({ slug: 'x', verifiedDomain: null }).replace(/^\w+:\/\/x|:\d+$/g, '')

  async function organizationOf(host: string): Promise<HostRow> {
    const slug = host.endsWith(suffix) ? host.slice(0, -suffix.length) : null
    const domain = slug === null ? host : null
    const [row] = await database.as('portico_app', (tx) =>
      tx.rows<HostRow>(sql`SELECT * FROM portico.find_organization_of_host(${slug}, ${domain})`),
    )
    if (!row) throw fail('organization_not_found')
    return row
  }

  return {
    /** A user who is signed in. The session holds on the host of its organisation and nowhere else. */
    async user(request: Request): Promise<Identity<Caller>> {
      if (request.token === null) throw fail('credential_missing', { message: 'Sign in first: POST /api/session.' })
      const identity = await authenticator.authenticate(request.token, request.address)
      if (request.host === `${identity.caller.organizationSlug}${suffix}`) return identity
      const { organization_id } = await organizationOf(request.host)
      if (organization_id !== identity.caller.organizationId) throw fail('credential_invalid')
      return identity
    },

    /** Somebody who is not signed in. */
    async visitor(request: Request): Promise<Identity<TenantVisitor>> {
      const row = await organizationOf(request.host)
      const { caller } = visitorOf(request)
      const refusal = row.archived ? 'application_archived' : row.status === 'inactive' ? 'organization_inactive' : null
      return {
        caller: {
          ...caller,
          appId: row.app_id,
          tenantId: row.organization_id,
          organizationId: row.organization_id,
          organizationName: row.name,
          organizationSlug: row.slug,
        },
        refusal,
      }
    },
  }
}
