import { describe } from 'vitest'
import { useTarget } from './support/target.ts'
import { walkContract } from './walkthrough/contract.ts'
import { walkCredentials } from './walkthrough/credentials.ts'
import { walkDemo } from './walkthrough/demo.ts'
import { walkPermissions } from './walkthrough/permissions.ts'
import { walkRecords } from './walkthrough/records.ts'

/**
 * The service as a newcomer meets it, over HTTP alone. One file, since all of it is about one service: starting one takes
 * longer than everything that is asked of it.
 */
const target = useTarget()

describe('demo.json', () => walkDemo(target))
describe('credentials', () => walkCredentials(target))
describe('the first hour', () => walkRecords(target))
describe('permissions', () => walkPermissions(target))
describe('contract, diagnostics, process', () => walkContract(target))
