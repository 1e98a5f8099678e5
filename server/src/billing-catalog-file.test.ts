import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readBillingCatalog } from './billing-catalog-file.ts'
import { ConfigError } from './config.ts'
import { defaultCatalog } from './shared/billing-catalog.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'plans-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function write(text: string): Promise<string> {
  const path = join(folder, 'plans.json')
  await writeFile(path, text)
  return path
}

test('the plans of a file take the place of those of the software', async () => {
  const catalog = { plans: [{ ...defaultCatalog.plans[0]!, label: 'Hosted' }] }
  expect(await readBillingCatalog(await write(JSON.stringify(catalog)))).toEqual(catalog)
  expect(await readBillingCatalog(null)).toEqual(defaultCatalog)
})

test('a file that is missing or wrong stops the start, with words that name the setting and the position', async () => {
  const missing = join(folder, 'nothing.json')
  const reading = readBillingCatalog(missing)
  await expect(reading).rejects.toBeInstanceOf(ConfigError)
  await expect(reading).rejects.toThrow(`PORTICO_BILLING_CATALOG_FILE: ${missing} cannot be read (ENOENT).`)
  const wrong = await write('{"plans":[{}]}')
  await expect(readBillingCatalog(wrong)).rejects.toThrow(
    `PORTICO_BILLING_CATALOG_FILE: ${wrong} is no catalog of plans. plans[0].planKey: This field is required.`,
  )
})
