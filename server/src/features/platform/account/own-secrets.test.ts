import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform, type TestBuilder } from '../../../../test/support/platform.ts'
import type { Tx } from '../../../kernel/transaction.ts'

let platform: Platform
let ann: TestBuilder
let bob: TestBuilder
beforeAll(async () => {
  platform = await startPlatform()
  ann = await platform.newAccount()
  bob = await platform.newMember(ann.accountId, 'developer')
  await platform.db.database.as('portico_owner', (tx) =>
    tx.rows({
      text: `INSERT INTO portico.builder_recovery_code (builder_id, code_hash) SELECT unnest($1::uuid[]), '\\x00'`,
      values: [[ann.builderId, bob.builderId]],
    }),
  )
})
afterAll(() => platform.stop())

/** What the database itself lets a transaction see that is bound to a member, whatever a statement names. */
const boundTo = <T>({ accountId, builderId }: TestBuilder, work: (tx: Tx) => Promise<T>) =>
  platform.db.database.as('portico_app', async (tx) => {
    await tx.rows({ text: 'SELECT portico.bind_builder($1, $2, NULL, NULL)', values: [accountId, builderId] })
    return work(tx)
  })
const ask = (by: TestBuilder, text: string, values: readonly unknown[] = []) =>
  boundTo(by, (tx) => tx.rows({ text, values }))

test('members see the names of each other, and the password and the codes of nobody but themselves', async () => {
  const names = await ask(ann, 'SELECT builder_id, email, display_name, totp_confirmed_at FROM portico.builder')
  expect(names).toHaveLength(2)
  for (const column of ['password_hash', 'totp_secret', 'totp_last_step', '*']) {
    await expect(ask(ann, `SELECT ${column} FROM portico.builder`)).rejects.toMatchObject({ code: '42501' })
  }
  for (const by of [ann, bob]) {
    const own = [{ id: by.builderId }]
    expect(await ask(by, 'SELECT builder_id AS id FROM portico.own_builder')).toEqual(own)
    expect(await ask(by, 'SELECT builder_id AS id FROM portico.builder_recovery_code')).toEqual(own)
  }
})

test('members change nothing of each other', async () => {
  for (const column of ['password_hash', 'totp_secret', 'display_name']) {
    const change = `SET ${column} = NULL WHERE builder_id = $1 RETURNING 1`
    const asked = ask(ann, `UPDATE portico.builder ${change}`, [bob.builderId])
    await expect(asked).rejects.toMatchObject({ code: '42501' })
    expect(await ask(ann, `UPDATE portico.own_builder ${change}`, [bob.builderId])).toEqual([])
  }
  expect(await ask(ann, 'DELETE FROM portico.builder_recovery_code RETURNING builder_id AS id')).toEqual([
    { id: ann.builderId },
  ])
  expect(await ask(bob, 'SELECT FROM portico.builder_recovery_code')).toHaveLength(1)
})

test('who is bound to nobody sees nobody', async () => {
  const unbound = (text: string) => platform.db.database.as('portico_app', (tx) => tx.rows({ text, values: [] }))
  for (const table of ['builder', 'own_builder', 'builder_recovery_code']) {
    expect(await unbound(`SELECT builder_id FROM portico.${table}`)).toEqual([])
  }
})
