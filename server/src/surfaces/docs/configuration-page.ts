import { generatedNotice, tableOf } from './markdown.ts'

/** What the page tells of a setting; the rows are those of `config.ts`. */
export interface SettingRow {
  readonly name: string
  readonly values: string
  readonly fallback: string
  readonly description: string
  readonly production?: string
}

/** `docs/configuration.md`: every environment variable that the service reads. */
export function renderConfiguration(settings: readonly SettingRow[]): string {
  const rows = settings.map(({ name, values, fallback, description, production }) => [
    `\`${name}\``,
    `${description} Takes ${values}.`,
    fallback,
    production ?? '',
  ])
  return `# Configuration

${generatedNotice('server/src/settings.ts')}

The service is configured by environment variables and by nothing else. An empty variable counts as one that is not set.
A value that is not valid stops the start, with a message that names the variable.

${tableOf(['Variable', 'Meaning', 'Default', 'In production'], rows)}
`
}
