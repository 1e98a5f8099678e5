import type { Operation } from '../../kernel/operation.ts'
import type { TenantContext, TenantVisitorContext } from '../../shared/tenant-context.ts'
import { changePassword, completeReset, requestReset } from './passwords.ts'
import { getSession, signIn, signOut } from './sessions.ts'

export const tenantSessionOperations: readonly Operation<TenantContext>[] = [getSession, signOut, changePassword]

export const tenantSessionVisitorOperations: readonly Operation<TenantVisitorContext>[] = [
  signIn,
  requestReset,
  completeReset,
]
