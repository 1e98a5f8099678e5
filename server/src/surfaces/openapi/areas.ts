/** One sentence for each resource family. */
export const areaDescriptions: Readonly<Record<string, string>> = {
  Discovery: 'Who the credential is, and this document.',
  Objects: 'The objects that the caller may read, and the fields of each with types, limits and rights.',
  Records: 'Search, read and change the records of an object, one at a time or in batches.',
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
}
