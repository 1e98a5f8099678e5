/**
 * Reads the format of Debian's package indices (deb822): stanzas of `Name: value` lines, parted by empty lines; a line
 * that starts with a blank continues the value before it.
 */
export type Stanza = Readonly<Record<string, string>>

/** The stanzas of a stream of text, one at a time: an index is 50 MB and more, and never held as a whole. */
export async function* readStanzas(chunks: AsyncIterable<string | Buffer>): AsyncGenerator<Stanza> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const parts = rest.replaceAll('\r\n', '\n').split(/\n\n+/)
    // The last part may go on in the next chunk.
    rest = parts.pop()!
    for (const part of parts) yield* stanzaOf(part)
  }
  yield* stanzaOf(rest)
}

function* stanzaOf(text: string): Generator<Stanza> {
  const stanza: Record<string, string> = Object.create(null)
  let name = ''
  for (const line of text.split('\n')) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (name !== '') stanza[name] += `\n${line.slice(1)}`
      continue
    }
    const colon = line.indexOf(':')
    if (colon < 1) continue
    name = line.slice(0, colon)
    stanza[name] = line.slice(colon + 1).trim()
  }
  if (name !== '') yield stanza
}
