import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, vi } from 'vitest'

interface KeptMail {
  readonly to: { readonly address: string }
  readonly text: string
}

/**
 * Reads links out of messages, which are files where there is no mail server (docs/mail.md). The function that it returns
 * waits for a message to an address with a link to a path, and gives out each link once.
 */
export function createLinkReader(dataDir: string) {
  const folder = join(dataDir, 'mail')
  const read = new Set<string>()

  async function findLink(address: string, pattern: RegExp): Promise<string | undefined> {
    const names = await readdir(folder).catch(() => [])
    // Newest first.
    for (const name of names.filter((one) => one.endsWith('.json')).sort()) {
      const { to, text }: KeptMail = JSON.parse(await readFile(join(folder, name), 'utf8'))
      const link = pattern.exec(text)?.[0]
      if (to.address === address && link !== undefined && !read.has(link)) return link
    }
    return undefined
  }

  return async function linkMailedTo(address: string, path: string): Promise<string> {
    const pattern = new RegExp(`https?://\\S+${path}#token=\\S+`)
    let link: string | undefined
    await vi.waitFor(
      async () => {
        link = await findLink(address, pattern)
        expect(link, `a link for ${address}`).toBeDefined()
      },
      { timeout: 10_000 },
    )
    read.add(link!)
    return link!
  }
}
