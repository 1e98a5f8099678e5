import type { Operation } from '../../../kernel/operation.ts'
import type { PlatformContext, VisitorContext } from '../../../shared/platform-context.ts'
import { acceptInvitation } from './acceptance.ts'
import { getAccount, updateAccount } from './account.ts'
import { invite, revokeInvitation } from './invitations.ts'
import { changePassword, getMe, updateMe } from './me.ts'
import { completePasswordReset, requestPasswordReset } from './password-resets.ts'
import { confirmTotp, enrollTotp, removeTotp } from './second-factor.ts'
import { listSessions, revokeSession } from './sessions.ts'
import { signIn } from './sign-in.ts'
import { getTeam, removeMember, updateMember } from './team.ts'

/** Builder accounts, those who work in them, and their sessions. */
export const accountOperations: readonly Operation<PlatformContext>[] = [
  listSessions,
  revokeSession,
  getMe,
  updateMe,
  changePassword,
  enrollTotp,
  confirmTotp,
  removeTotp,
  getAccount,
  updateAccount,
  getTeam,
  updateMember,
  removeMember,
  invite,
  revokeInvitation,
]

/** What leads into an account. */
export const accountVisitorOperations: readonly Operation<VisitorContext>[] = [
  signIn,
  requestPasswordReset,
  completePasswordReset,
  acceptInvitation,
]
