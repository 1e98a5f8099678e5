import type { CallerKind } from '../../kernel/caller.ts'
import type { Json } from './json-schema.ts'

/** How each kind of credential is called in specification 5. */
const schemes: Readonly<Partial<Record<CallerKind, { name: string; description: string }>>> = {
  live: {
    name: 'LiveAppCredential',
    description: 'A credential of an application, bound to one organization. Only for trusted servers.',
  },
  dat: { name: 'DelegatedUserCredential', description: 'Acts as one user of an organization, for a short time.' },
  bld: { name: 'BuilderSession', description: 'The session of a builder, from POST /v1/platform/sessions.' },
  draft: { name: 'DraftCredential', description: 'Reads, saves and validates unpublished pages, and nothing else.' },
}

export function schemeNameOf(kind: CallerKind): string {
  return schemeFor(kind).name
}

export function schemeOf(kind: CallerKind): Json {
  const { description } = schemeFor(kind)
  return { type: 'http', scheme: 'bearer', bearerFormat: `ptc_${kind}_…`, description }
}

function schemeFor(kind: CallerKind) {
  const scheme = schemes[kind]
  if (!scheme) throw new Error(`No operation takes a credential of the kind ${kind}.`)
  return scheme
}
