import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConfigError } from './config.ts'
import { readableAuthorities } from './extra-authorities.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-authorities-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('without a file there are no further authorities', async () => {
  expect(await readableAuthorities(null)).toBeUndefined()
})

test('a file with a certificate is taken', async () => {
  const path = join(folder, 'ca.pem')
  await writeFile(path, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n')
  expect(await readableAuthorities(path)).toBe(path)
})

test('a file that is missing or holds none stops the start with a sentence that names the setting', async () => {
  const key = join(folder, 'key.pem')
  await writeFile(key, '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n')
  for (const path of [join(folder, 'missing.pem'), key]) {
    const refused = readableAuthorities(path)
    await expect(refused).rejects.toBeInstanceOf(ConfigError)
    await expect(refused).rejects.toThrow(
      /^PORTICO_EXTRA_CA_FILE: .*\.pem (cannot be read \(ENOENT\)|holds no certificate)/,
    )
  }
})
