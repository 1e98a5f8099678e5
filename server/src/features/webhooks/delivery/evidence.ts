/** What an attempt keeps of an answer: enough for somebody to see what their receiver said. */
export interface Evidence {
  readonly responseExcerpt: string | null
  readonly responseTruncated: boolean
}

export const excerptBytesMax = 4096

/** What no text of a page or an API has, apart from tabs and line ends. PostgreSQL keeps no NUL at all. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** The body of an answer as text of at most 4 KiB; null where it is empty or no UTF-8. */
export function evidenceOf({
  body,
  bodyTruncated,
}: {
  readonly body: Uint8Array
  readonly bodyTruncated: boolean
}): Evidence {
  const kept = body.subarray(0, excerptBytesMax)
  const isCut = body.length > kept.length
  try {
    // As a stream, a character that was cut off at the end is not an error.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(kept, { stream: isCut || bodyTruncated })
    const shown = text.replace(controls, '')
    return { responseExcerpt: shown === '' ? null : shown, responseTruncated: isCut || bodyTruncated }
  } catch {
    return { responseExcerpt: null, responseTruncated: bodyTruncated }
  }
}
