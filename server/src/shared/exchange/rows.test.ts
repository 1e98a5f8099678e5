import { expect, test } from 'vitest'
import { batchesOf } from './import.ts'
import { rowsOf, type SourceRow } from './rows.ts'

/** Files that are made to take far more memory than they have bytes. */
async function* fileOf(pieces: Iterable<string>): AsyncGenerator<Buffer> {
  for (const piece of pieces) yield Buffer.from(piece)
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of source) found.push(one)
  return found
}

const read = (format: 'csv' | 'ndjson', pieces: Iterable<string>): Promise<SourceRow[]> =>
  all(rowsOf(fileOf(pieces), { format }))

const refused = (field: string, message: string) => ({
  code: 'import_file_invalid',
  details: [{ field, code: 'import_file_invalid', message }],
})

test('a row of CSV ends, whatever line breaks it has in quotes', async () => {
  const endless = Array.from({ length: 5 }, () => `"\n"${','.repeat(1_000_000)}`)
  await expect(read('csv', ['name\n', ...endless])).rejects.toMatchObject(
    refused('file', 'A row is larger than 1 MiB.'),
  )
})

test('a row of CSV has as many cells as a header may have', async () => {
  const full = ','.repeat(999)
  expect(await read('csv', ['name\n', `${full}\n`])).toHaveLength(2)
  await expect(read('csv', ['name\n', 'a\n', `${full},\n`])).rejects.toMatchObject(
    refused('row 2', 'There are more than 1000 columns.'),
  )
  await expect(read('csv', [`${full},\n`])).rejects.toMatchObject(
    refused('header', 'There are more than 1000 columns.'),
  )
})

test('empty lines are no row that never ends', async () => {
  const lines = Array.from({ length: 5 }, () => '\n'.repeat(1_000_000))
  expect(await read('csv', ['name\n', ...lines, 'a\n'])).toHaveLength(2)
})

test('a line of JSON that is too deep is refused before it is parsed, and the next one is read', async () => {
  const deep = `{"name":${'['.repeat(200_000)}${']'.repeat(200_000)}}\n`
  expect(await read('ndjson', [deep, '{"name":"a"}\n'])).toMatchObject([
    { row: 1, problem: 'The line has more than 64 levels.' },
    { row: 2, line: { name: 'a' } },
  ])
})

test('large rows are written a few at a time', async () => {
  const line = `{"name":"${'a'.repeat(1_000_000)}"}\n`
  const options = { format: 'ndjson' } as const
  const work = {
    file: () => fileOf(Array.from({ length: 10 }, () => line)),
    input: { objectKey: 'company', native: false, options },
    signal: new AbortController().signal,
  }
  const batches = await all(batchesOf(work, 0))
  expect(batches.map(({ rows }) => rows.map(({ row }) => row))).toEqual([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
    [9, 10],
  ])
})
