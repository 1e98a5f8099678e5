import type { Readable, Transform } from 'node:stream'
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'

/** What came of a body, also of one that broke off: it is evidence. */
export interface PartialBody {
  bytes: Uint8Array
  isTruncated: boolean
}

/** Endless input that decompresses to next to nothing must end as well. */
const overheadBytesMax = 65_536

/** A stream that ends early gives what it has: whether a body is complete is known from HTTP, not from its coding. */
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createUnzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  deflate: () => createUnzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
}

/**
 * Reads a body into `into`, up to `bytesMax` bytes after decompression, and drops the connection when there is more. A cut
 * never splits a character of UTF-8. Where the coding is unknown, or several are stacked, the bytes stay as they are;
 * where it is broken, the body counts as truncated: its receiver has answered nevertheless. Throws what broke the stream.
 */
export async function readBody(source: Readable, coding: string, bytesMax: number, into: PartialBody): Promise<void> {
  const name = coding.trim().toLowerCase().replace(/^x-/, '')
  const decoder = Object.hasOwn(decoders, name) ? decoders[name]!() : undefined
  let broken: unknown
  source.on('error', (error) => {
    broken = error
    decoder?.destroy(error)
  })
  if (decoder) {
    let received = 0
    source.on('data', (chunk: Uint8Array) => {
      received += chunk.byteLength
      if (received > bytesMax + overheadBytesMax) decoder.destroy(new Error('There is no end to the body.'))
    })
    source.pipe(decoder)
  }
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of (decoder ?? source) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size > bytesMax) break
    }
  } catch (error) {
    if (!decoder || broken) throw error
    into.isTruncated = true
  } finally {
    decoder?.destroy()
    source.destroy()
    into.isTruncated ||= size > bytesMax || broken !== undefined
    const bytes = Buffer.concat(chunks, Math.min(size, bytesMax))
    into.bytes = into.isTruncated ? wholeCharacters(bytes) : bytes
  }
}

/** Without the beginning of a character at the end (RFC 3629: at most four bytes, all but the first 10xxxxxx). */
function wholeCharacters(bytes: Uint8Array): Uint8Array {
  let start = bytes.length - 1
  while (start > bytes.length - 4 && start > 0 && (bytes[start]! & 0xc0) === 0x80) start--
  const first = bytes[start] ?? 0
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1
  return start + length > bytes.length ? bytes.subarray(0, start) : bytes
}
