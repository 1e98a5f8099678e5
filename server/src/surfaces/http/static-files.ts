import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Answer } from './send.ts'

/** A file that is served as it is. It is read, hashed and compressed at its first request, then kept. */
export interface StaticFile {
  readonly contentType: string
  /** Headers beyond the content type. */
  readonly headers?: Readonly<Record<string, string>>
  readonly url: URL
}

interface LoadedFile {
  readonly headers: Readonly<Record<string, string>>
  readonly plain: Buffer
  readonly gzipped: Buffer
}

const compress = promisify(gzip)

/** Answers requests for files by their paths, compressed where the client takes it. */
export function createStaticFiles(files: Readonly<Record<string, StaticFile>>) {
  const load = createFileLoader()
  return {
    paths: Object.keys(files),
    async answer(path: string, acceptEncoding: string | undefined): Promise<Answer> {
      const { headers, plain, gzipped } = await load(files[path]!)
      if (!/\bgzip\b/.test(acceptEncoding ?? '')) return { status: 200, headers, payload: plain }
      return { status: 200, headers: { ...headers, 'content-encoding': 'gzip' }, payload: gzipped }
    },
  }
}

function createFileLoader(): (file: StaticFile) => Promise<LoadedFile> {
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
