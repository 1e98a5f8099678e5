/**
 * The cookie of a tenant session: HttpOnly, SameSite=Lax, for the whole host and for no other. Over https its name has
 * the prefix `__Host-`, which browsers accept only from the host itself, with Secure and without Domain (RFC 6265bis 4.1.3).
 */
export interface SessionCookie {
  readonly name: string
  /** The value of `Set-Cookie` that keeps the token for so many seconds. */
  keep(token: string, seconds: number): string
  /** The value of `Set-Cookie` that removes it. */
  drop(): string
}

export function createSessionCookie(baseUrl: string): SessionCookie {
  const secure = baseUrl.startsWith('https:')
  const name = secure ? '__Host-portico_session' : 'portico_session'
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return {
    name,
    keep: (token, seconds) => `${name}=${token}; ${attributes}; Max-Age=${seconds}`,
    drop: () => `${name}=; ${attributes}; Max-Age=0`,
  }
}
