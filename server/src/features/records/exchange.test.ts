import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cellsOf, type Exchange, exchangeOf, parts } from '../../../test/support/exchange.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import type { ErrorBody } from '../../kernel/errors.ts'
import type { RecordView } from '../../shared/records/record.ts'

/** Imports and exports of custom objects, end to end over HTTP. */
let service: TestService
let companies: Exchange
let deals: Exchange

beforeAll(async () => {
  service = await startTestService()
  const { live } = service.app.organizations.a.credentials
  companies = exchangeOf(service, '/objects/company/records', live)
  deals = exchangeOf(service, '/objects/deal/records', live)
})
afterAll(() => service.stop())

const users = () => service.app.organizations.a.users
const unique = () => randomUUID().slice(0, 8)

async function found(objectKey: string, search: string, token = service.app.organizations.a.credentials.live.token) {
  const path = `/v1/apps/${service.app.appId}/objects/${objectKey}/records/search`
  const { json } = await service.call<{ records: RecordView[] }>('POST', path, {
    token,
    body: { search, pageSize: 200 },
  })
  return json.records
}

describe('an import', () => {
  test('creates a record for each row, and says where it can be followed', async () => {
    const name = unique()
    const answer = await companies.begin('import', { body: { format: 'csv', content: `name\n${name}\n` } })
    expect(answer.status).toBe(202)
    const address = `/v1/apps/${service.app.appId}/operations/${answer.json.operationId}`
    expect(answer.json).toEqual({
      operationId: answer.json.operationId,
      status: 'queued',
      statusUrl: address,
      correlationId: answer.correlationId,
    })
    expect(answer.headers).toMatchObject({ location: address, 'retry-after': '1' })
    const ended = await companies.end(answer)
    expect(ended).toMatchObject({
      type: 'records.import',
      status: 'succeeded',
      progress: { total: 1, processed: 1, succeeded: 1, failed: 0 },
      result: { objectKey: 'company', mode: 'insert', dryRun: false, rows: 1, created: 1, updated: 0, failed: 0 },
      errorsUrl: null,
      error: null,
    })
    expect(await found('company', name)).toHaveLength(1)
  })

  test('takes a file of hundreds of rows as multipart/form-data', async () => {
    const name = unique()
    const rows = Array.from({ length: 450 }, (_, index) => `${name} ${index},${name}-${index}`)
    const ended = await companies.upload(`Title,Ref\r\n${rows.join('\r\n')}`, {
      mapping: { Title: 'name', Ref: 'externalKey' },
    })
    expect(ended).toMatchObject({ status: 'succeeded', progress: { total: 450, succeeded: 450 } })
    const count = await service.call('POST', `/v1/apps/${service.app.appId}/objects/company/records/count`, {
      token: users().owner.token,
      body: { search: name },
    })
    expect(count.json).toMatchObject({ totalRecords: 450 })
  })

  test('names each row that cannot be taken, and takes the others', async () => {
    const name = unique()
    const ended = await deals.import(`name,amount\n${name} a,12.50\n${name} b,much\n,1\n${name} d,2,3\n${name} e,7\n`)
    expect(ended).toMatchObject({ status: 'partially_succeeded', progress: { total: 5, succeeded: 2, failed: 3 } })
    expect(await deals.errors(ended)).toMatchObject([
      { row: 2, field: 'amount', code: 'field_value_invalid' },
      { row: 3, field: 'name', code: 'required_field_missing' },
      { row: 4, field: 'row', code: 'validation_failed' },
    ])
    expect((await found('deal', name)).map((one) => one.displayName).toSorted()).toEqual([`${name} a`, `${name} e`])
  })

  test('ends as failed where no row can be taken', async () => {
    const ended = await deals.import('name,amount\nx,much\n')
    expect(ended).toMatchObject({ status: 'failed', error: { code: 'import_rows_invalid' }, progress: { failed: 1 } })
  })

  test('stops behind the first such row where that was asked', async () => {
    const name = unique()
    const rows = Array.from({ length: 10 }, (_, index) => `${name} ${index},${index === 4 ? 'much' : 1}`)
    const ended = await deals.import(`name,amount\n${rows.join('\n')}\n`, { onError: 'stop' })
    expect(ended).toMatchObject({ status: 'partially_succeeded', progress: { total: 10, processed: 5, succeeded: 4 } })
    expect(await found('deal', name)).toHaveLength(4)
  })

  test('updates by external key, twice in one file too', async () => {
    const key = unique()
    const upsert = { mode: 'upsert' }
    const rows = [`${key},Old`, `${key}-2,Other`, `${key},New`]
    const ended = await companies.import(`externalKey,name\n${rows.join('\n')}\n`, upsert)
    expect(ended).toMatchObject({ status: 'succeeded', result: { created: 2, updated: 1 } })
    expect(await companies.import(`externalKey,name\n,Keyless\n`, upsert)).toMatchObject({ status: 'failed' })
    const path = `/v1/apps/${service.app.appId}/objects/company/records/by-key/${key}`
    const { json } = await service.call<RecordView>('GET', path, { token: users().owner.token })
    expect(json.displayName).toBe('New')
  })

  test('updates by a unique field, whatever its case, and clears what is empty where that was asked', async () => {
    const domain = `${unique()}.example`
    const by = { mode: 'upsert', key: 'domain' }
    const first = `name,domain,country\nOld,${domain},Austria\nOther,${domain}.at,Austria\n`
    expect(await companies.import(first, by)).toMatchObject({ result: { created: 2, updated: 0 } })
    const second = `name,domain,country\nNew,${domain.toUpperCase()},\nNewer,${domain},\n`
    expect(await companies.import(second, by)).toMatchObject({ result: { created: 0, updated: 2 } })
    const [kept] = (await found('company', domain)).filter((one) => one.displayName === 'Newer')
    expect(kept!.fields['country']).toBe('Austria')
    await companies.import(second, { ...by, emptyCells: 'clear' })
    const [cleared] = (await found('company', domain)).filter((one) => one.displayName === 'Newer')
    expect(cleared!.fields['country']).toBeNull()
    const doubled = await companies.import(`name,domain\nX,${domain}\n`)
    expect(await companies.errors(doubled)).toMatchObject([{ row: 1, field: 'domain', code: 'duplicate_value' }])
  })

  test('updates by record id what an export had, and creates rows without one', async () => {
    const name = unique()
    await companies.import(`name,country\n${name} a,Austria\n${name} b,Belgium\n`)
    const by = { mode: 'upsert', key: 'recordId' }
    const { text } = await companies.export({ search: name, fields: ['name', 'country'] })
    const edited = text.replace('Austria', 'Australia')
    expect(await companies.import(edited, by)).toMatchObject({
      status: 'succeeded',
      result: { created: 0, updated: 2 },
    })
    const more = await companies.import(`recordId,name\n,${name} c\n${randomUUID()},${name} d\nx,${name} e\n`, {
      ...by,
      emptyCells: 'clear',
    })
    expect(more).toMatchObject({ result: { created: 1, updated: 0, failed: 2 } })
    expect(await companies.errors(more)).toMatchObject([
      { row: 2, code: 'record_not_found' },
      { row: 3, field: 'recordId', code: 'validation_failed' },
    ])
    const foreign = exchangeOf(service, '/objects/company/records', service.app.organizations.b.credentials.live)
    expect((await foreign.import(edited, by)).result).toMatchObject({ created: 0, updated: 0, failed: 2 })
    const kept = (await found('company', name)).map((one) => [one.displayName, one.fields['country']])
    expect(kept.toSorted()).toEqual([
      [`${name} a`, 'Australia'],
      [`${name} b`, 'Belgium'],
      [`${name} c`, null],
    ])
    expect(await companies.import(text)).toMatchObject({ result: { created: 2, updated: 0 } })
  })

  test('knows no field that its initiator may not read, and places nothing where it may not', async () => {
    const { a, b } = service.app.organizations
    const clerk = exchangeOf(service, '/objects/dossier/records', users().clerk)
    const hidden = await clerk.import('title,hiddenSum\nx,1\n')
    const unknown = await clerk.import('title,nothing\nx,1\n')
    expect(hidden.error).toMatchObject({ code: 'import_columns_invalid' })
    const messages = [hidden, unknown].map(({ error }) => error!.details![0]!.message.replace(/"\w+"/, 'it'))
    expect(messages[0]).toBe(messages[1])
    const sales = exchangeOf(service, '/objects/deal/records', users().sales)
    const rows = [a.locations['south'], b.locations['north'], randomUUID(), 'north'].map(
      (id) => `x,${a.dataRoles['sales']},${id}`,
    )
    const ended = await sales.import(`name,dataRoleId,locationId\n${rows.join('\n')}\n`)
    expect(ended.progress).toMatchObject({ succeeded: 0, failed: 4 })
    const [south, foreign, nowhere, malformed] = await sales.errors(ended)
    expect(south).toMatchObject({ field: 'dataRoleId', code: 'permission_denied' })
    expect({ ...foreign, row: 0 }).toEqual({ ...nowhere, row: 0 })
    expect(malformed).toMatchObject({ field: 'locationId', code: 'validation_failed' })
  })

  test('a dry run says the same and writes nothing', async () => {
    const name = unique()
    const content = `name,amount\n${name} a,12.50\n${name} b,much\n`
    const dry = await deals.import(content, { dryRun: true })
    expect(dry).toMatchObject({ status: 'partially_succeeded', progress: { succeeded: 1, failed: 1 } })
    expect(await found('deal', name)).toEqual([])
    const wet = await deals.import(content)
    expect(await deals.errors(wet)).toEqual(await deals.errors(dry))
    expect(wet.progress).toEqual(dry.progress)
    expect(await found('deal', name)).toHaveLength(1)
  })

  test('takes JSON lines, and names those that are none', async () => {
    const name = unique()
    const lines = [
      `{"name":"${name}","amount":"1.50"}`,
      '{"name":',
      '',
      '[]',
      '{"name":"x","colour":"red"}',
      '{"__proto__":{}}',
    ]
    const ended = await deals.import(`\ufeff${lines.join('\r\n')}`, { format: 'ndjson' })
    expect(ended).toMatchObject({ status: 'partially_succeeded', progress: { total: 5, succeeded: 1, failed: 4 } })
    expect((await deals.errors(ended)).map(({ row, code }) => [row, code])).toEqual([
      [2, 'invalid_json'],
      [3, 'invalid_json'],
      [4, 'unknown_field'],
      [5, 'invalid_json'],
    ])
  })

  test('is refused at once where it could take nothing', async () => {
    const cases: [object, string, string][] = [
      [{}, 'validation_failed', 'content'],
      [{ content: 'a', mapping: { a: 'nothing' } }, 'unknown_field', 'mapping.a'],
      [{ content: 'a', mapping: { a: 'name', b: 'name' } }, 'validation_failed', 'mapping.b'],
      [{ content: 'a', mode: 'upsert', key: 'name' }, 'validation_failed', 'key'],
    ]
    for (const [body, code, field] of cases) {
      const { json } = await companies.begin('import', { body: { format: 'csv', ...body } })
      expect(json).toMatchObject({ code, details: [{ field }] })
    }
    const reader = exchangeOf(service, '/objects/deal/records', users().support)
    expect((await reader.begin('import', { body: { format: 'csv', content: 'name\n' } })).json).toMatchObject({
      code: 'permission_denied',
    })
    const outsider = exchangeOf(service, '/objects/deal/records', users().outsider)
    for (const verb of ['import', 'export'] as const) {
      const body = { format: 'csv', ...(verb === 'import' && { content: 'name\n' }) }
      expect((await outsider.begin(verb, { body })).json).toMatchObject({ code: 'object_not_found' })
    }
  })

  test('with one Idempotency-Key happens once, and another file is another request', async () => {
    const name = unique()
    const headers = { 'idempotency-key': unique() }
    const send = (content: string) => {
      const sent = parts({ format: 'csv' }, content)
      return companies.begin('import', { ...sent, headers: { ...sent.headers, ...headers } })
    }
    const first = await send(`name\n${name}\n`)
    const again = await send(`name\n${name}\n`)
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.text).toBe(first.text)
    expect((await send(`name\n${name} 2\n`)).json.code).toBe('idempotency_key_reused')
    await companies.end(first)
    expect(await found('company', name)).toHaveLength(1)
  })
})

describe('a file that is none', () => {
  const invalid = { status: 'failed', error: { code: 'import_file_invalid' }, progress: { processed: 0 } }

  test.each([
    ['an unclosed quote', `name\nfine\n"never closed\nand on\n`],
    ['text behind a quote', 'name\n"a"b\n'],
    ['nothing', ''],
    ['a million columns', `${'a,'.repeat(1_000_000)}\n`],
    ['a million empty cells', `name\n${','.repeat(4_000_000)}`],
    ['a field of 50 MB', `name\n"${'x'.repeat(50_000_000)}"\n`],
    ['a field of 50 MB in lines', `name\n"${'xxxxxxxxx\n'.repeat(5_000_000)}"\n`],
    ['bytes that are no UTF-8', Buffer.from([0x6e, 0x0a, 0xff, 0xfe, 0x0a])],
  ])('%s: nothing is written', async (_, file) => {
    const ended = await companies.upload(file)
    expect(ended).toMatchObject(invalid)
    expect(ended.error!.details).toHaveLength(1)
  })

  test('columns that do not fit are named', async () => {
    const ended = await companies.import('name,colour,name\na,b,c\n')
    expect(ended).toMatchObject({ status: 'failed', error: { code: 'import_columns_invalid' } })
    expect(ended.error!.details!.map(({ field }) => field)).toEqual(['colour', 'name'])
  })

  test('a name that was probably meant is told', async () => {
    const ended = await companies.import('name,Domian\na,b\n')
    expect(ended.error!.details![0]!.message).toContain('Did you mean "domain"?')
    const lines = await companies.import('{"nme":"a"}\n', { format: 'ndjson' })
    expect((await companies.errors(lines))[0]!.message).toContain('Did you mean "name"?')
  })

  test('an upsert takes its key from the file, and a key takes an upsert', async () => {
    const content = 'name\na\n'
    const ended = await companies.import(content, { mode: 'upsert', key: 'domain' })
    expect(ended).toMatchObject({
      error: { code: 'import_columns_invalid', details: [{ field: 'domain' }] },
      progress: { processed: 0 },
    })
    const refused = async (options: object) => {
      const { status, json } = await companies.begin('import', { body: { format: 'csv', content, ...options } })
      return [status, (json as unknown as ErrorBody).details?.[0]?.field]
    }
    expect(await refused({ key: 'domain' })).toEqual([400, 'key'])
    expect(await refused({ mode: 'upsert', key: 'domain', mapping: { name: 'name' } })).toEqual([400, 'mapping'])
    expect(await refused({ mode: 'upsert', mapping: { name: 'externalKey' } })).toEqual([202, undefined])
  })

  test('a byte order mark, NUL and the ends of lines of every system', async () => {
    const name = unique()
    for (const end of ['\n', '\r\n', '\r']) {
      const ended = await companies.import(`\ufeff${['name', `${name} fine`, `${name} \0`].join(end)}${end}`)
      expect(ended).toMatchObject({ progress: { total: 2, succeeded: 1, failed: 1 } })
      expect(await companies.errors(ended)).toMatchObject([{ row: 2, field: 'name', code: 'field_value_invalid' }])
    }
  })

  test('requests that are no parts of a file', async () => {
    const options = { format: 'csv' }
    const fileFirst = parts(options, 'name\n', 'file first')
    const missing = { code: 'validation_failed', details: [{ field: 'options' }] }
    expect((await companies.begin('import', fileFirst)).json).toMatchObject(missing)
    const { headers, raw } = parts(options, 'name\n')
    const cut = (raw as Buffer).subarray(0, -30)
    expect((await companies.begin('import', { headers: headers!, raw: cut })).json.code).toBe('malformed_request')
    const noBoundary = { headers: { 'content-type': 'multipart/form-data; x=1' }, raw: raw! }
    expect((await companies.begin('import', noBoundary)).json.code).toBe('malformed_request')
    expect((await companies.begin('import', parts({ format: 'xml' }, 'x'))).json.code).toBe('validation_failed')
    expect((await companies.begin('import', parts(options, Buffer.alloc(105_000_000, 'x')))).json.code).toBe(
      'payload_too_large',
    )
    const { a } = service.app.organizations
    const unread = exchangeOf(service, '/objects/nothing/records', a.credentials.live)
    expect((await unread.begin('import', parts(options, Buffer.alloc(3_000_000, 'x')))).json.code).toBe(
      'object_not_found',
    )
  })
})

describe('an export', () => {
  test('is a private file of what was searched for', async () => {
    const name = unique()
    await deals.import(`name,amount,externalKey\n"${name}, Inc.",12.50,${name}\n${name} b,-3,\n`)
    const { file, text, ...ended } = await deals.export({ search: name, sort: 'name_asc', fields: ['name', 'amount'] })
    const fileUrl = `/v1/apps/${service.app.appId}/operations/${ended.operationId}/file`
    expect(ended).toMatchObject({
      status: 'succeeded',
      progress: { total: 2, processed: 2, succeeded: 2, failed: 0 },
      result: { objectKey: 'deal', format: 'csv', rows: 2, fileUrl },
    })
    expect(file!.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="deal.csv"',
      'content-length': String(ended.result!['sizeBytes']),
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
    })
    const lines = text.split('\r\n')
    expect(lines[0]).toBe(
      'recordId,name,amount,ownerUserId,dataRoleId,locationId,externalKey,createdAt,updatedAt,archivedAt,revision',
    )
    expect(lines.slice(1).map((line) => line.replaceAll(/[0-9a-f-]{36}|\d{4}-[^,]*Z/g, ''))).toEqual([
      `,${name} b,-3,,,,,,,,1`,
      `,"${name}, Inc.",12.50,,,,${name},,,,1`,
      '',
    ])
  })

  test('defuses what a spreadsheet would run, and an import takes it as it was', async () => {
    const mark = unique()
    const hostile = ['=1+1', '+1', '-1', '@a', '\tx', '\rx', "'=1", "'plain", 'a\nb', 'say "hi"'].map(
      (text) => `${text} ${mark}`,
    )
    for (const name of hostile) {
      const path = `/v1/apps/${service.app.appId}/objects/company/records`
      await service.call('POST', path, { token: users().owner.token, body: { fields: { name } } })
    }
    const exported = await companies.export({ search: mark, fields: ['name'] })
    for (const start of ['=', '+', '-', '@', '\t', '\r']) expect(exported.text).not.toContain(`,${start}`)
    expect(exported.text).toContain(`'=1+1 ${mark}`)
    const again = await companies.import(exported.text)
    expect(again).toMatchObject({ status: 'succeeded', progress: { total: hostile.length } })
    const names = (await found('company', mark)).map((one) => one.displayName)
    expect(names.toSorted()).toEqual([...hostile, ...hostile].toSorted())
    const plain = await companies.export({ search: mark, fields: ['name'], escapeFormulas: false })
    expect(plain.text).toContain(`,=1+1 ${mark}`)
  })

  test('of more rows than a page and a chunk hold has each once', async () => {
    const name = unique()
    const rows = Array.from({ length: 1700 }, (_, index) => `${name} ${index}`)
    await deals.upload(`name,notes\n${rows.map((row) => `${row},${'x'.repeat(1500)}`).join('\n')}\n`)
    const exported = await deals.export({ search: name, format: 'ndjson', sort: 'name_asc' })
    const lines = exported.text.trim().split('\n')
    const names = lines.map((line) => (JSON.parse(line) as { name: string }).name)
    expect(names.toSorted()).toEqual(rows.toSorted())
    expect(exported.file!.headers['content-type']).toBe('application/x-ndjson')
    expect(Number(exported.result!['sizeBytes'])).toBeGreaterThan(2_000_000)
  })

  test('has only what its maker may see, and is found by nobody else', async () => {
    const name = unique()
    const { locations, dataRoles } = service.app.organizations.a
    const roleId = dataRoles['sales']
    await deals.import(
      `name,dataRoleId,locationId\n${name} north,${roleId},${locations['north']}\n${name} south,${roleId},${locations['south']}\n`,
    )
    const sales = exchangeOf(service, '/objects/deal/records', users().sales)
    const mine = await sales.export({ search: name, fields: ['name'] })
    expect(cellsOf(mine.text).map((cells) => cells[1])).toEqual(['name', `${name} north`])
    const support = exchangeOf(service, '/objects/deal/records', users().support)
    expect((await support.begin('export', { body: { format: 'csv', fields: ['amount'] } })).json.code).toBe(
      'unknown_field',
    )
    const header = cellsOf((await support.export({ search: name })).text)[0]
    expect(header).not.toContain('amount')
    for (const other of [support, exchangeOf(service, '', service.app.organizations.a.credentials.enveloped)]) {
      expect((await other.status(mine.operationId)).json.code).toBe('operation_not_found')
      expect((await other.file(mine.operationId)).json.code).toBe('operation_not_found')
      expect((await other.cancel(mine.operationId)).json.code).toBe('operation_not_found')
      expect((await other.list()).json.items.map((one) => one.operationId)).not.toContain(mine.operationId)
    }
    expect((await deals.file(mine.operationId)).text).toBe(mine.text)
    expect((await sales.cancel(mine.operationId)).json.code).toBe('operation_ended')
    const imported = await deals.import('name\nx\n')
    expect((await deals.file(imported.operationId)).json.code).toBe('operation_file_not_found')
  })

  test('operations are listed by type and status, newest first', async () => {
    const owner = exchangeOf(service, '/objects/company/records', users().owner)
    const ids = []
    for (let count = 0; count < 3; count++) ids.unshift((await owner.export()).operationId)
    const first = await owner.list('?type=records.export&status=succeeded&pageSize=2')
    expect(first.json.items.map((one) => one.operationId)).toEqual(ids.slice(0, 2))
    const second = await owner.list(`?type=records.export&status=succeeded&pageSize=2&cursor=${first.json.nextCursor}`)
    expect(second.json.items[0]!.operationId).toBe(ids[2])
    expect((await owner.list('?type=records.import&status=running')).json.items).toEqual([])
  })
})
