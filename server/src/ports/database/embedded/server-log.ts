/** The server's own log file: bounded, and asked for its last words when the server does not start. */
import { copyFile, open, stat, truncate } from 'node:fs/promises'

const sizeBytesMax = 10 * 1024 * 1024

/**
 * Keeps one older file. The current one is copied and emptied rather than renamed: a server that is still running
 * goes on writing to it (at its end, since it was opened for appending).
 */
export async function trimLog(file: string): Promise<void> {
  const sizeBytes = await sizeOf(file)
  if (sizeBytes <= sizeBytesMax) return
  await copyFile(file, `${file}.1`).catch(() => {}) // it may be another user's; a bounded file matters more
  await truncate(file)
}

export async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  )
}

/** What the server said since the file had that size: its last lines, without the times. */
export async function lastWords(file: string, sinceBytes: number): Promise<string> {
  const handle = await open(file, 'r').catch(() => undefined)
  if (!handle) return ''
  try {
    const sizeBytes = (await handle.stat()).size
    const from = Math.max(sinceBytes > sizeBytes ? 0 : sinceBytes, sizeBytes - 4096)
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(4096), position: from })
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n')
    return lines
      .map((line) => line.replace(/^\d{4}-\S+ \S+ \w+ \[\d+\] /, '').trim())
      .filter((line) => line !== '')
      .slice(-8)
      .join('\n')
  } finally {
    await handle.close()
  }
}
