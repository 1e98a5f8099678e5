/** What a client knows of every record that it tried to create. The service is held to exactly this. */
export interface Entry {
  readonly key: string
  readonly name: string
  /**
   * - `acknowledged`: answered with 201, so it must be there, once, for ever;
   * - `refused`: answered that it was not done, or never sent, so it must not be there;
   * - `unknown`: no answer, or one that says that nobody knows. Repeated under its key it must end as one record.
   */
  outcome: 'acknowledged' | 'refused' | 'unknown'
  recordId?: string
}

export class Ledger {
  readonly prefix: string
  readonly entries = new Map<string, Entry>()
  #made = 0

  /** Names begin with `prefix`, and so can be told from those of others. */
  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** Notes a creation before it is sent. */
  open(): Entry {
    const name = `${this.prefix}-${String(++this.#made).padStart(6, '0')}`
    const entry: Entry = { key: crypto.randomUUID(), name, outcome: 'unknown' }
    this.entries.set(name, entry)
    return entry
  }

  with(outcome: Entry['outcome']): Entry[] {
    return [...this.entries.values()].filter((entry) => entry.outcome === outcome)
  }

  /** Everything in which the records that are there differ from what the client knows. */
  compare(found: readonly { readonly recordId: string; readonly name: string }[]): string[] {
    const problems: string[] = []
    const ids = new Map<string, string[]>()
    for (const { name, recordId } of found) ids.set(name, [...(ids.get(name) ?? []), recordId])
    for (const [name, recordIds] of ids) {
      const entry = this.entries.get(name)
      if (!entry) problems.push(`${name} is there, and nobody made it`)
      else if (entry.outcome === 'refused') problems.push(`${name} is there, and was refused`)
      if (recordIds.length > 1) problems.push(`${name} is there ${recordIds.length} times`)
    }
    for (const { name, outcome, recordId } of this.entries.values()) {
      if (outcome !== 'acknowledged') continue
      if (!ids.has(name)) problems.push(`${name} was acknowledged, and is lost`)
      else if (!ids.get(name)!.includes(recordId!)) problems.push(`${name} has another id than the acknowledged one`)
    }
    return problems
  }
}
