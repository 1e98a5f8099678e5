import { readFile } from 'node:fs/promises'
import { ConfigError } from './config.ts'

/** The path of `PORTICO_EXTRA_CA_FILE`, when there are certificates in it. A mistake stops the start. */
export async function readableAuthorities(path: string | null): Promise<string | undefined> {
  if (path === null) return undefined
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError([`PORTICO_EXTRA_CA_FILE: ${path} cannot be read (${error.code}).`])
  })
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    throw new ConfigError([`PORTICO_EXTRA_CA_FILE: ${path} holds no certificate in PEM.`])
  }
  return path
}
