import { generatedNotice, tableOf } from './markdown.ts'

/** As much of the descriptors of native modules as the page tells of. */
interface Documented {
  readonly key: string
  readonly pluralLabel: string
  readonly description: string
  readonly nameField: string
  readonly fields: readonly DocumentedField[]
  readonly states?: {
    readonly field: string
    readonly initial: string
    readonly transitions: Readonly<Record<string, readonly string[]>>
  }
  readonly relationships: readonly {
    readonly relationshipKey: string
    readonly label: string
    readonly to: string
    readonly cardinality: string
  }[]
}

interface DocumentedField {
  readonly fieldKey: string
  readonly dataType: string
  readonly description: string
  readonly required?: true
  readonly unique?: true
  readonly indexed?: true
  readonly searchable?: true
  readonly readOnly?: true
  readonly default?: unknown
  readonly references?: string
  readonly options?: readonly { readonly value: string }[]
  readonly lockedIn?: readonly string[]
}

/** `docs/module-fields.md`: the fields, states and relationships of every native module. */
export function renderModuleFields(modules: readonly Documented[]): string {
  return `# Fields of native modules

${generatedNotice('server/src/features/modules/descriptors.ts')}

What holds of all modules is in [modules.md](modules.md). Every row also has \`recordId\`, \`ownerUserId\`, \`dataRoleId\`,
\`locationId\`, \`externalKey\`, \`createdAt\`, \`updatedAt\`, \`archivedAt\` and \`revision\`.

${modules.map(sectionOf).join('\n\n')}
`
}

function sectionOf(module: Documented): string {
  const parts = [
    `## ${module.pluralLabel}`,
    `\`/modules/${module.key}\`. ${module.description} \`${module.nameField}\` names a record.`,
    tableOf(['Field', 'Type', 'Meaning', 'Rules'], module.fields.map(rowOf)),
  ]
  if (module.states) parts.push(statesOf(module.states))
  if (module.relationships.length > 0) {
    const relationships = module.relationships.map(
      (one) => `- \`${one.relationshipKey}\`: ${one.label}, to \`${one.to}\`, ${one.cardinality}`,
    )
    parts.push(`Relationships:\n\n${relationships.join('\n')}`)
  }
  return parts.join('\n\n')
}

function rowOf(field: DocumentedField): readonly string[] {
  const type = field.references === undefined ? field.dataType : `reference to \`${field.references}\``
  return [`\`${field.fieldKey}\``, type, meaningOf(field), rulesOf(field).join(', ')]
}

function meaningOf({ description, options }: DocumentedField): string {
  return options ? `${description} One of ${options.map((option) => `\`${option.value}\``).join(', ')}.` : description
}

function rulesOf(field: DocumentedField): string[] {
  const { required, readOnly, unique, indexed, searchable, lockedIn } = field
  const initial = field.default
  return [
    ...(required ? ['required'] : []),
    ...(readOnly ? ['set by the service'] : []),
    ...(initial === undefined ? [] : [`default \`${JSON.stringify(initial)}\``]),
    ...(unique ? ['unique'] : []),
    ...(indexed ? ['indexed'] : []),
    ...(searchable ? ['searched'] : []),
    ...(lockedIn ? [`final in ${lockedIn.join(', ')}`] : []),
  ]
}

function statesOf({ field, initial, transitions }: NonNullable<Documented['states']>): string {
  const lines = Object.entries(transitions).map(
    ([from, to]) => `- \`${from}\` → ${to.map((state) => `\`${state}\``).join(', ')}`,
  )
  return `States (\`${field}\`), from \`${initial}\` on:\n\n${lines.join('\n')}`
}
