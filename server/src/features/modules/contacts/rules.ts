import type { WireValues } from '../../../shared/catalogue/behaviour.ts'
import type { Email, Phone } from '../descriptors/reachability.ts'

/** Decisions about contacts: which may be one, and what one holds that was two. Nothing here touches the database. */
export interface Reachable {
  readonly recordId: string
  readonly createdAt: string
  readonly displayName: string | null
  readonly emails: readonly string[]
  readonly phones: readonly string[]
  readonly primaryEmail: string | null
  readonly primaryPhone: string | null
}

export type Reason = 'email' | 'phone' | 'name'

export interface Pair {
  readonly contacts: readonly [older: Named, newer: Named]
  readonly reasons: readonly Reason[]
  readonly score: number
}

type Named = Pick<Reachable, 'recordId' | 'createdAt' | 'displayName'>

/** A contact as duplicates are told by: addresses without regard to case, numbers in the form of E.164 where they have one. */
export function reachable(recordId: string, createdAt: string, values: WireValues): Reachable {
  const emails = (values['emails'] ?? []) as readonly Email[]
  const phones = (values['phones'] ?? []) as readonly Phone[]
  const text = (key: string) => (typeof values[key] === 'string' ? values[key] : null)
  return {
    recordId,
    createdAt,
    displayName: text('displayName'),
    emails: emails.map((entry) => entry.address.toLowerCase()),
    phones: phones.map((entry) => entry.e164 ?? entry.number),
    primaryEmail: text('primaryEmail')?.toLowerCase() ?? null,
    primaryPhone: text('primaryPhone'),
  }
}

const certainty: Readonly<Record<'email' | 'phone', number>> = { email: 1, phone: 0.9 }

/** What two contacts share. */
export function sharedReasons(one: Reachable, other: Reachable): ('email' | 'phone')[] {
  const reasons: ('email' | 'phone')[] = []
  if (one.emails.some((address) => other.emails.includes(address))) reasons.push('email')
  if (one.phones.some((number) => other.phones.includes(number))) reasons.push('phone')
  return reasons
}

/** Gathers the pairs of one page, each told once, with everything that speaks for it. */
export class Pairs {
  private readonly found = new Map<string, { one: Named; other: Named; reasons: Map<Reason, number> }>()

  add(one: Named, other: Named, reason: Reason, score = reason === 'name' ? 0 : certainty[reason]): void {
    const [older, newer] = isOlder(one, other) ? [one, other] : [other, one]
    const key = `${older.recordId} ${newer.recordId}`
    const pair = this.found.get(key) ?? { one: older, other: newer, reasons: new Map<Reason, number>() }
    pair.reasons.set(reason, score)
    this.found.set(key, pair)
  }

  /** The surest first. */
  sorted(): Pair[] {
    const pairs = [...this.found.values()].map(({ one, other, reasons }) => ({
      contacts: [one, other] as const,
      reasons: [...reasons.keys()].sort(),
      score: Math.max(...reasons.values()),
    }))
    return pairs.sort((a, b) => b.score - a.score || (keyOf(a) < keyOf(b) ? -1 : 1))
  }
}

function keyOf({ contacts }: Pair): string {
  return contacts.map((contact) => contact.recordId).join()
}

/** In the order of their creation, as pages go through them. */
export function isOlder(one: Named, other: Named): boolean {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt
  return one.recordId < other.recordId
}

/** Lists that hold what both held; of the rest the survivor's own values stand where it has any. */
const gathered: Readonly<Record<string, (entry: unknown) => string>> = {
  emails: (entry) => (entry as Email).address.toLowerCase(),
  phones: (entry) => (entry as Phone).e164 ?? (entry as Phone).number,
  tags: (entry) => String(entry),
  addresses: (entry) => JSON.stringify(entry),
}

/**
 * What a survivor takes over from the other contact, among the fields that the caller may write: values that it lacks, and
 * entries of its lists. `mostOf` says how many entries a list may have.
 */
export function takenOver(
  survivor: WireValues,
  other: WireValues,
  writable: ReadonlySet<string>,
  mostOf: (fieldKey: string) => number,
): WireValues {
  const values: Record<string, unknown> = {}
  for (const [fieldKey, value] of Object.entries(other)) {
    if (!writable.has(fieldKey) || isEmpty(value)) continue
    const identify = gathered[fieldKey]
    if (identify) {
      const own = (survivor[fieldKey] ?? []) as readonly unknown[]
      const known = new Set(own.map(identify))
      const more = (value as readonly unknown[]).filter((entry) => !known.has(identify(entry)))
      // The primary of the survivor stays; without any of its own that of the other one is it.
      const plain = own.length === 0 ? more : more.map(withoutPrimary)
      if (more.length > 0) values[fieldKey] = [...own, ...plain].slice(0, mostOf(fieldKey))
    } else if (isEmpty(survivor[fieldKey])) values[fieldKey] = value
  }
  return values
}

function withoutPrimary(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null || !('isPrimary' in entry)) return entry
  return { ...entry, isPrimary: false }
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}
