import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A file that is served as it is. It is read, hashed and compressed at its first request, then kept. */
export interface StaticFile {
  readonly contentType: string
  /** Headers beyond the content type. */
  readonly headers?: Readonly<Record<string, string>>
  readonly url: URL
}

export interface LoadedFile {
  readonly headers: Readonly<Record<string, string>>
  readonly plain: Buffer
  readonly gzipped: Buffer
}

const compress = promisify(gzip)

export function createFileLoader(): (file: StaticFile) => Promise<LoadedFile> {
  const loaded = new Map<StaticFile, Promise<LoadedFile>>()
  return (file) => {
    let pending = loaded.get(file)
    if (!pending) {
      pending = load(file)
      loaded.set(file, pending)
      // A failed read is tried again by the next request.
      pending.catch(() => loaded.delete(file))
    }
    return pending
  }
}

async function load(file: StaticFile): Promise<LoadedFile> {
  const plain = await readFile(file.url)
  const gzipped = await compress(plain, { level: 9 })
  const etag = `W/"${createHash('sha256').update(plain).digest('hex').slice(0, 32)}"`
  const headers = {
    ...file.headers,
    'content-type': file.contentType,
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    etag,
  }
  return { headers, plain, gzipped }
}
