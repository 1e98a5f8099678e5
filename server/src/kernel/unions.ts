/**
 * What a value misses that fits no branch of a union. The branches it is not even of the kind of say nothing of use: of
 * those that it is, the problems are told, and where there is none, the union is told as a whole, in one sentence.
 */
export interface SchemaError {
  readonly keyword: string
  /** A JSON pointer into the schema, with a `#` before it. */
  readonly schemaPath: string
  /** A JSON pointer into the value. */
  readonly instancePath: string
}

/** Tells that a value is of another kind, and not only wrong in a part of it. */
const kindKeywords: ReadonlySet<string> = new Set(['type', 'enum', 'const', 'anyOf'])

/**
 * Leaves out what the branches of unions say of other kinds of values. A union that stays stands for all of its branches,
 * under the keyword of the first. Inner unions come before outer ones, as the validator tells them.
 */
export function withoutOtherKinds<E extends SchemaError>(errors: readonly E[]): (E & { readonly union?: true })[] {
  let told: (E & { readonly union?: true })[] = [...errors]
  for (const union of errors) {
    if (union.keyword !== 'anyOf') continue
    const branches = branchesOf(union, told)
    const misfits = branches.filter((branch) => branch.some((error) => isOfOtherKind(union, error)))
    const isMisfit = misfits.length === branches.length
    const silent = new Set<E>((isMisfit ? branches : misfits).flat())
    const first = branches[0]?.[0]?.keyword ?? union.keyword
    told = told
      .filter((error) => !silent.has(error) && (isMisfit || error !== union))
      .map((error) => (error === union ? { ...union, keyword: first, union: true } : error))
  }
  return told
}

function branchesOf<E extends SchemaError>(union: E, errors: readonly E[]): E[][] {
  const start = `${union.schemaPath}/anyOf/`
  const branches = new Map<string, E[]>()
  for (const error of errors) {
    if (!error.schemaPath.startsWith(start)) continue
    const [index] = error.schemaPath.slice(start.length).split('/', 1)
    branches.set(index!, [...(branches.get(index!) ?? []), error])
  }
  return [...branches.values()]
}

function isOfOtherKind({ schemaPath, instancePath }: SchemaError, error: SchemaError): boolean {
  const isOfBranch = !error.schemaPath.slice(`${schemaPath}/anyOf/`.length).includes('/')
  return isOfBranch && error.instancePath === instancePath && kindKeywords.has(error.keyword)
}

type Schema = Readonly<Record<string, unknown>>

/** What a union takes, in words: `"all" or a list such as ["north"]`. */
export function kindsOf(schema: Schema): string {
  const kinds = [...new Set(kindsIn(schema))]
  return kinds.length < 2 ? kinds.join('') : `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`
}

function kindsIn(schema: Schema): string[] {
  const branches = schema['anyOf'] as readonly Schema[] | undefined
  if (branches) return branches.flatMap(kindsIn)
  const values = schema['enum'] as readonly unknown[] | undefined
  if (values) return values.map((value) => JSON.stringify(value))
  if (Object.hasOwn(schema, 'const')) return [JSON.stringify(schema['const'])]
  const type = schema['type'] as keyof typeof names | undefined
  if (type !== 'array') return [type === undefined ? 'another value' : (names[type] ?? String(type))]
  const example = (schema['examples'] as readonly unknown[] | undefined)?.[0]
  return [example === undefined ? 'a list' : `a list such as ${JSON.stringify(example)}`]
}

const names = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  object: 'an object',
  null: 'null',
  array: 'a list',
} as const
