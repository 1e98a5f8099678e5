/** One sentence for each resource family. */
export const areaDescriptions: Readonly<Record<string, string>> = {
  Discovery: 'Who the credential is, and this document.',
  Objects: 'The objects that the caller may read, and the fields of each with types, limits and rights.',
  Records: 'Search, read and change the records of an object, one at a time or in batches.',
  Diagnostics: 'What the service noted about a request, found by its correlation id.',
  Pages: 'Pages of the application and their drafts.',
  'Platform contract': 'This document, made for the role of who asks for it.',
}
