import type { ApplicationCredentialKind } from '../../kernel/caller.ts'
import type { Json } from './json-schema.ts'

/** How each kind of credential is called in specification 5. */
const schemes: Readonly<Record<ApplicationCredentialKind, { name: string; description: string }>> = {
  live: {
    name: 'LiveAppCredential',
    description: 'A credential of an application, bound to one organization. Only for trusted servers.',
  },
  dat: { name: 'DelegatedUserCredential', description: 'Acts as one user of an organization, for a short time.' },
  draft: { name: 'DraftCredential', description: 'Reads, saves and validates unpublished pages, and nothing else.' },
}

export function schemeNameOf(kind: ApplicationCredentialKind): string {
  return schemes[kind].name
}

export function schemeOf(kind: ApplicationCredentialKind): Json {
  const { description } = schemes[kind]
  return { type: 'http', scheme: 'bearer', bearerFormat: `ptc_${kind}_…`, description }
}
