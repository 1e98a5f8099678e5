import type { Operation } from '../../kernel/operation.ts'

/** One sentence for each resource family. */
export const areaDescriptions: Readonly<Record<string, string>> = {
  Discovery: 'Who the credential is, and this document.',
  Objects: 'The objects that the caller may read, and the fields of each with types, limits and rights.',
  Records: 'Search, read and change the records of an object, one at a time or in batches.',
  Relationships: 'Which records are related, and as what: list, make and end relationships.',
  'Global search': 'One search over the records of every module and object.',
  Operations: 'Work that goes on after the answer, such as imports and exports: where it stands, and what came of it.',
  Webhooks: 'Subscriptions to events, and what became of each delivery.',
  Events: 'The events of the organization as a log, for consumers that cannot be called.',
  Diagnostics: 'What the service noted about a request, found by its correlation id.',
  Pages: 'Pages of the application and their drafts.',
  'Platform contract': 'This document, made for the role of who asks for it.',
  Sessions: 'Sign in, and see and end sessions.',
  Organizations: 'Customer organizations of an application, and their locations.',
  Users: 'People of a customer organization: who they are, and what they may do in it.',
  Invitations: 'Who was invited to a customer organization, and has not yet accepted.',
  Credentials: 'What the servers of a customer organization sign in with: issued, rotated and revoked.',
  Billing: 'Plans, and what the applications of the account use.',
  Marketplace: 'Listings that the account is entitled to.',
  Audit: 'Who changed what, with the target before and after.',
  Me: 'The person behind the session: name, password and second factor.',
  Account: 'The builder account: its name, plan and billing address.',
  Team: 'The members of the account, their roles, and who was invited.',
  Applications: 'Applications of the account.',
  Models: 'What an application consists of: the draft of its model, what publishing it would do, and its releases.',
}

/** What an operation's family is about; undefined where nobody says. */
export function describedArea({ area, areaDescription }: Pick<Operation, 'area' | 'areaDescription'>) {
  return areaDescription ?? areaDescriptions[area]
}
