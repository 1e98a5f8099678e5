import { readFile } from 'node:fs/promises'
import { ConfigError } from './config.ts'
import { type BillingCatalog, defaultCatalog, parseBillingCatalog } from './shared/billing-catalog.ts'

/** The plans of `PORTICO_BILLING_CATALOG_FILE`; without one those of the software. A mistake in it stops the start. */
export async function readBillingCatalog(path: string | null): Promise<BillingCatalog> {
  if (path === null) return defaultCatalog
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError([`PORTICO_BILLING_CATALOG_FILE: ${path} cannot be read (${error.code}).`])
  })
  try {
    return parseBillingCatalog(text)
  } catch (error) {
    throw new ConfigError([`PORTICO_BILLING_CATALOG_FILE: ${path} is no catalog of plans. ${(error as Error).message}`])
  }
}
