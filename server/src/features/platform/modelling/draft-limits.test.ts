import { afterAll, beforeAll, expect, test } from 'vitest'
import { newModelBuilder } from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())

test('a draft cannot grow part by part beyond what can be saved at once, and stays one that can be changed', async () => {
  const model = await newModelBuilder(platform)
  const options = Array.from({ length: 400 }, (_, index) => ({ value: `v${index}`, label: 'x'.repeat(200) }))
  const choices = Array.from({ length: 9 }, (_, index) => ({
    fieldKey: `s${index}`,
    label: 'S',
    dataType: 'select',
    options,
  }))
  const fields = [{ fieldKey: 'name', label: 'Name', dataType: 'text' }, ...choices]
  const put = (objectKey: string) =>
    model.ask('PUT', `/model/draft/objects/${objectKey}`, {
      object: { label: 'O', pluralLabel: 'Os', nameField: 'name', fields },
    })

  let count = 0
  let answer = await put('o0')
  while (answer.status === 200 && count < 20) answer = await put(`o${++count}`)
  expect([answer.status, answer.json['code']]).toEqual([413, 'payload_too_large'])
  expect((await model.ask('DELETE', '/model/draft/objects/o0')).status).toBe(200)
  expect((await put(`o${count}`)).status).toBe(200)
  expect((await model.ask('DELETE', '/model/draft')).status).toBe(200)
})

test('the audit log stays readable, however large the drafts are that somebody saves', async () => {
  const model = await newModelBuilder(platform)
  const fields = Array.from({ length: 150 }, (_, index) => ({
    fieldKey: `f${index}`,
    label: 'x'.repeat(200),
    dataType: 'text',
  }))
  const objects = (label: string) =>
    Array.from({ length: 80 }, (_, index) => ({
      ...{ objectKey: `o${index}`, label, pluralLabel: 'Os', nameField: 'f0' },
      fields,
    }))
  for (let save = 0; save < 8; save++) {
    const { status } = await model.ask('PUT', '/model/draft', { document: { objects: objects(`O${save}`) } })
    expect(status).toBe(200)
  }
  const { status, json } = await platform.call<{ items: { action: string; after: object }[] }>(
    'GET',
    `/v1/platform/audit?saasAppId=${model.saasAppId}`,
    { token: model.builder.token },
  )
  expect(status).toBe(200)
  const saves = json.items.filter(({ action }) => action === 'model_draft.updated')
  expect(saves).toHaveLength(8)
  const large = { tooLarge: true, bytes: expect.any(Number), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }
  expect(saves[0]).toMatchObject({ before: large, after: large })
})

test.each(['a\u0000b', 'a\ud800b'])('text that no database keeps is refused by name: %j', async (text) => {
  const model = await newModelBuilder(platform)
  const name = { fieldKey: 'name', label: 'Name', dataType: 'text' }
  const object = { objectKey: 'deal', label: 'Deal', pluralLabel: 'Deals', nameField: 'name', fields: [name] }
  const put = (document: object) => model.ask('PUT', '/model/draft', { document })
  const choice = { fieldKey: 's', label: 'S', dataType: 'select', options: [{ value: text, label: 'X' }] }
  const roles = { sales: { label: 'Sales', objects: { [text]: { read: true } } } }
  for (const [document, field] of [
    [{ objects: [{ ...object, label: text }] }, 'document.objects[0].label'],
    [{ objects: [{ ...object, fields: [name, choice] }] }, 'document.objects[0].fields[1].options[0].value'],
    [{ objects: [object], roles }, 'document.roles.sales.objects'],
  ] as const) {
    const { status, json } = await put(document)
    expect([status, json['code'], json['details']]).toEqual([
      400,
      'validation_failed',
      [expect.objectContaining({ field })],
    ])
  }
  const role = await model.ask('PUT', '/model/draft/roles/sales', { part: { label: text, objects: {} } })
  expect([role.status, role.json['details']]).toEqual([
    400,
    [expect.objectContaining({ field: 'document.roles.sales.label' })],
  ])
  expect((await put({ objects: [object] })).status).toBe(200)
})
