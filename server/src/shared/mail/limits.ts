import type { MailKind } from './messages.ts'

/** What a message is for. Each purpose is counted by itself: who is invited too often still gets the link for a password. */
export type MailPurpose = 'invitation' | 'password_reset' | 'notice'

/** So many messages of a purpose in any such time. */
export interface MailLimit {
  /** Of one recipient, whoever writes; of one builder account with all its organisations; or of one recipient from one account. */
  readonly per: 'recipient' | 'account' | 'recipient of account'
  readonly seconds: number
  readonly most: number
}

const hour = 60 * 60
const day = 24 * hour

export const mailPurposes: Readonly<Record<MailKind, MailPurpose>> = {
  tenant_invitation: 'invitation',
  builder_invitation: 'invitation',
  tenant_password_reset: 'password_reset',
  builder_password_reset: 'password_reset',
  password_changed: 'notice',
}

/**
 * Mailboxes are other people's (docs/limits.md). Invitations go to anybody whose address somebody writes, so they are
 * limited whoever sends them. Links for a password and notices go to people who are here: counted for each account, so that
 * nobody's can be used up by means of an account of somebody else's.
 */
export const mailLimits: Readonly<Record<MailPurpose, readonly MailLimit[]>> = {
  invitation: [
    { per: 'recipient', seconds: hour, most: 5 },
    { per: 'recipient', seconds: day, most: 20 },
    { per: 'account', seconds: hour, most: 500 },
  ],
  password_reset: [
    { per: 'recipient of account', seconds: hour, most: 5 },
    { per: 'recipient of account', seconds: day, most: 20 },
  ],
  notice: [
    { per: 'recipient of account', seconds: hour, most: 5 },
    { per: 'recipient of account', seconds: day, most: 20 },
  ],
}

/** The longest time that anything is counted for. */
export const mailCountedMs = day * 1000

/** The lower number is sent first: somebody waits for a password, and thousands may be invited at once. */
export const mailPriorities: Readonly<Record<MailPurpose, number>> = { password_reset: 0, notice: 0, invitation: 1 }
