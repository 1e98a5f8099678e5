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
