/** How long things last, and how they are written. No I/O. */

const dayMs = 24 * 60 * 60 * 1000

/** From the sign-in on, however much a session is used (OWASP: an absolute time limit). */
export const sessionSeconds = (14 * dayMs) / 1000
/** The newest of a user that are kept: more than that is no person with devices. */
export const sessionsMax = 50
/** How long the link of a password reset works. */
const resetMs = 60 * 60 * 1000
/** Nobody gets more than one of those mails in this time, however often somebody asks. */
const resetPauseMs = 60 * 1000
/** Links of one user that work side by side. With one, whoever asks in another's name would take theirs away. */
export const resetsMax = 3
/** A claim is answered no sooner than this, so that the time it takes does not tell whether there was somebody to write to. */
export const resetAnswerAfterMs = 200

export function sessionExpiry(now: number): string {
  return new Date(now + sessionSeconds * 1000).toISOString()
}

/** When a reset asked for now was made and expires, and how old the last one must be for it to be made at all. */
export function resetTimes(now: number) {
  const [createdAt, expiresAt, unlessSince] = [now, now + resetMs, now - resetPauseMs].map((at) =>
    new Date(at).toISOString(),
  ) as [string, string, string]
  return { createdAt, expiresAt, unlessSince }
}

/** In the fragment, which browsers send to no server: neither the log of a proxy nor a Referer can hold the token. */
export function resetLink(tenantOrigin: string, token: string): string {
  return `${tenantOrigin}/reset-password#token=${token}`
}

/** One name for all spellings of an address: guesses are counted by it. */
export function accountName(email: string): string {
  return email.normalize('NFKC').trim().toLowerCase()
}

/** What a client says of itself is kept for lists of sessions; a line of it will do. */
export function userAgentLine(userAgent: string): string {
  return userAgent
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, 300)
    .toWellFormed()
}
