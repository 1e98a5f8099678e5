type Json = Readonly<Record<string, unknown>>

/** One operation as a contract shows it. */
export interface Shown {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly body: unknown
  /** The path as the examples of its parameters fill it. */
  readonly address: string
  readonly response: Json
  /** Codes of refusals, by status; none for the others. */
  readonly refusals: Readonly<Record<string, readonly string[]>>
  /** The schemes of credentials that it takes; none where it needs no credential. */
  readonly security: readonly string[]
}

/** What a node of the document is, or refers to. */
export function follow(document: Json, node: Json): Json {
  if (typeof node['$ref'] !== 'string') return node
  return node['$ref']
    .slice(2)
    .split('/')
    .reduce<Json>((at, name) => at[name] as Json, document)
}

/** Every operation of a contract, by its id. */
export function shownIn(document: Json): Map<string, Shown> {
  const media = (node: unknown) => ((node as Json)?.['content'] as Json)?.['application/json'] as Json | undefined
  const shownBy = (content: Json | undefined) => {
    const [shared] = Object.values((content?.['examples'] ?? {}) as Readonly<Record<string, Json>>)
    return shared ? follow(document, shared)['value'] : content?.['example']
  }
  const all = Object.entries(document['paths'] as Json).flatMap(([path, methods]) =>
    Object.entries(methods as Readonly<Record<string, Json>>).map(([method, operation]): Shown => {
      const parameters = (operation['parameters'] as Json[]).map((one) => follow(document, one))
      const address = parameters
        .filter((one) => one['in'] === 'path')
        .reduce((filled, one) => filled.replace(`{${one['name']}}`, String(one['example'])), path)
      const [status] = Object.keys(operation['responses'] as Json)
      return {
        id: String(operation['operationId']),
        method: method.toUpperCase(),
        path,
        body: media(operation['requestBody'])?.['example'],
        address,
        response: shownBy(media(follow(document, (operation['responses'] as Record<string, Json>)[status!]!))) as Json,
        refusals: Object.fromEntries(
          Object.entries(operation['responses'] as Readonly<Record<string, Json>>).map(([answer, response]) => {
            const examples = media(follow(document, response))?.['examples'] ?? {}
            return [answer, Number(answer) < 400 ? [] : Object.keys(examples)]
          }),
        ),
        security: (operation['security'] as Json[]).flatMap((scheme) => Object.keys(scheme)),
      }
    }),
  )
  return new Map(all.map((one) => [one.id, one]))
}
