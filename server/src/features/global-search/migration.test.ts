import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { startSearch } from './testing.ts'

/** Migrations 0016 and 0029 fill in what the documents of a database lack that was there before them. */

test('documents that were there before the migration know their readers, their title and their times', async () => {
  const search = await startSearch()
  const { owner, captain } = search.organizations.a.users
  const vessels = search.records(owner, 'vessel')
  await vessels.create({ fields: { name: 'Öre One', log: 'x' }, participants: [captain.userId] })
  await vessels.create({ fields: { name: 'Two' }, ownerUserId: captain.userId })
  await vessels.create({ fields: { log: 'no name' }, dataRoleId: search.organizations.a.dataRoles['crew'] })
  const blockOf = async (name: string) => {
    const text = await readFile(new URL(`../../../migrations/${name}.sql`, import.meta.url), 'utf8')
    return text.slice(text.indexOf('DO $$'), text.indexOf('END $$;') + 7)
  }
  const blocks = [await blockOf('0016_global_search'), await blockOf('0029_search_in_order')]
  await asAdministrator(search.running.db.connection, async (admin) => {
    const read = async () => (await admin.query('SELECT * FROM portico.search_document ORDER BY record_id')).rows
    const before = await read()
    expect(before).toHaveLength(3)
    await admin.query(`UPDATE portico.search_document SET owner_user_id = NULL, data_role_id = NULL, location_id = NULL,
      participant_ids = '{}', title = NULL, updated_at = '1970-01-01',
      created_at = '1970-01-01'`)
    expect(await read()).not.toEqual(before)
    await admin.query('SET ROLE portico_owner')
    await admin.query('BEGIN')
    for (const block of blocks) await admin.query(block)
    await admin.query('COMMIT')
    await admin.query('RESET ROLE')
    expect(await read()).toEqual(before)
  })
  await search.close()
}, 60000)
