import type { Client } from './client.ts'
import { number } from './progress.ts'
import type { Survey } from './source.ts'

/** Five questions that people ask of a package catalogue, as searches of records. */
export interface Asking {
  readonly client: Client
  readonly survey: Survey
  readonly phrase: string
  readonly words: string
}

interface Found {
  readonly records: readonly {
    readonly displayName: string
    readonly fields: Readonly<Record<string, string | number | null>>
    readonly expanded?: { readonly maintainer: { readonly displayName: string } | null }
  }[]
  readonly totalRecords?: number
}

interface Question {
  readonly title: string
  /** Returns lines to print. */
  ask(): Promise<string[]>
}

const rounds = 5

/** Asks each question several times, prints the answer once, and how long the first and the median asking took. */
export async function askQuestions(asking: Asking, print: (line: string) => void): Promise<void> {
  for (const [index, { title, ask }] of questionsOf(asking).entries()) {
    const times: number[] = []
    let lines: string[] = []
    for (let round = 0; round < rounds; round++) {
      const started = performance.now()
      lines = await ask()
      times.push(performance.now() - started)
    }
    const first = times[0]!
    const median = times.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!
    print(`\n${index + 1}. ${title}`)
    for (const line of lines) print(`   ${line}`)
    print(`   — ${first.toFixed(1)} ms at first, ${median.toFixed(1)} ms the median of ${rounds}`)
  }
}

function questionsOf({ client, survey, phrase, words }: Asking): readonly Question[] {
  const [busiest = ''] = [...survey.byMaintainer.keys()]
  const sections = [...survey.bySection.keys()].slice(0, 3)
  const [section = ''] = sections
  const search = async (body: object) => (await client.post<Found>('/objects/package/records/search', body)).body
  const count = async (filter: object) => {
    const answer = await client.post<{ totalRecords: number }>('/objects/package/records/count', { filter })
    return answer.body.totalRecords
  }

  return [
    {
      title: `Of the packages of ${busiest}, the ten last by name:`,
      async ask() {
        const { records, totalRecords } = await search({
          filter: { related: 'maintainer', some: { field: 'email', op: 'eq', value: busiest } },
          sort: 'name_desc',
          pageSize: 10,
          fields: ['name', 'version'],
          includeTotal: true,
        })
        const listed = records.map(({ fields }) => `${fields['name']} ${fields['version']}`)
        return [...listed, `${checked(totalRecords!, survey.byMaintainer.get(busiest))} packages in all`]
      },
    },
    {
      title: `Packages whose description contains “${phrase}”, the largest first:`,
      async ask() {
        // Long texts have no index: the service reads all of them.
        const { records, totalRecords } = await search({
          filter: {
            and: [
              { field: 'description', op: 'contains', value: phrase },
              { field: 'installedSize', op: 'isNotNull' },
            ],
          },
          sort: 'installedSize_desc',
          pageSize: 5,
          fields: ['name', 'installedSize', 'summary'],
          includeTotal: true,
        })
        const listed = records.map(({ fields }) => `${size(fields)}  ${fields['name']}: ${fields['summary']}`)
        return [...listed, `${number(totalRecords!)} packages in all`]
      },
    },
    {
      title: 'How many packages belong to each of three sections?',
      async ask() {
        const counts = await Promise.all(sections.map((value) => count({ field: 'section', op: 'eq', value })))
        return sections.map((name, index) => `${checked(counts[index]!, survey.bySection.get(name))}  ${name}`)
      },
    },
    {
      title: `The largest packages of the section ${section}, with those who look after them:`,
      async ask() {
        const { records } = await search({
          // Empty values are the largest: a package of unknown size would come first.
          filter: {
            and: [
              { field: 'section', op: 'eq', value: section },
              { field: 'installedSize', op: 'isNotNull' },
            ],
          },
          sort: 'installedSize_desc',
          pageSize: 5,
          fields: ['name', 'installedSize', 'maintainer'],
          expand: ['maintainer'],
        })
        return records.map(
          ({ fields, expanded }) =>
            `${size(fields)}  ${fields['name']}, ${expanded?.maintainer?.displayName ?? 'nobody'}`,
        )
      },
    },
    {
      title: `Packages whose summary has the words “${words}”, by name:`,
      async ask() {
        const { records, totalRecords } = await search({
          search: words,
          sort: 'name_asc',
          pageSize: 5,
          fields: ['name', 'summary'],
          includeTotal: true,
        })
        const listed = records.map(({ fields }) => `${fields['name']}: ${fields['summary']}`)
        return [...listed, `${number(totalRecords!)} packages in all`]
      },
    },
  ]
}

/** What the service counted, held against what was counted while reading the index. */
function checked(counted: number, expected: number | undefined): string {
  return counted === expected ? number(counted) : `${number(counted)} (the index has ${number(expected ?? 0)}!)`
}

function size(fields: Readonly<Record<string, string | number | null>>): string {
  return `${number(Number(fields['installedSize'] ?? 0) / 1024)} MiB`.padStart(10)
}
