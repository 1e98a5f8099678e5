import type { Account, GoodRequest } from './platform-account.ts'

/**
 * A request for each operation of `/v1/platform` that works. Whoever uses one up, for instance a session that is revoked,
 * makes a new one for it; what only has to be there is made once.
 */
export const platformRequests: Readonly<Record<string, (account: Account) => GoodRequest | Promise<GoodRequest>>> = {
  developerPlatformContractGet: () => ({}),
}
