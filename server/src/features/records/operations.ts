import { exchangeOperations } from './exchange.ts'
import { readingOperations } from './reading.ts'
import { writingOperations } from './writing.ts'

export const recordOperations = [...readingOperations, ...writingOperations, ...exchangeOperations]
