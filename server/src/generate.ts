import { readFile, writeFile } from 'node:fs/promises'
import { modules } from './features/modules/descriptors.ts'
import { platformRegistry, tenantRegistry, tenantVisitorRegistry, visitorRegistry } from './operations.ts'
import { settings } from './settings.ts'
import { renderConfiguration } from './surfaces/docs/configuration-page.ts'
import { renderErrors } from './surfaces/docs/errors-page.ts'
import { renderModuleFields } from './surfaces/docs/module-fields-page.ts'
import { renderPlatformOperations } from './surfaces/docs/platform-operations-page.ts'

/** Writes the generated files, or with `--check` tells which of them are out of date. */
const files: Readonly<Record<string, () => string>> = {
  'docs/configuration.md': () => renderConfiguration(settings),
  'docs/errors.md': renderErrors,
  'docs/module-fields.md': () => renderModuleFields(modules),
  'docs/platform-operations.md': () =>
    renderPlatformOperations({
      platform: [...visitorRegistry.operations, ...platformRegistry.operations],
      tenant: [...tenantVisitorRegistry.operations, ...tenantRegistry.operations],
    }),
}

const root = new URL('../../', import.meta.url)

async function generate(check: boolean): Promise<readonly string[]> {
  const stale: string[] = []
  for (const [path, render] of Object.entries(files)) {
    const url = new URL(path, root)
    const text = render()
    if (text === (await readFile(url, 'utf8').catch(() => undefined))) continue
    stale.push(path)
    if (!check) await writeFile(url, text)
  }
  return stale
}

const check = process.argv.includes('--check')
const stale = await generate(check)
if (check && stale.length > 0) {
  console.error(`Out of date: ${stale.join(', ')}. Run \`npm run generate\` and commit what it writes.`)
  process.exitCode = 1
} else {
  console.log(stale.length === 0 ? 'Generated files are up to date.' : `Written: ${stale.join(', ')}.`)
}
