import { diagnosticsOperations } from './features/diagnostics/operations.ts'
import { discoveryOperations } from './features/discovery/operations.ts'
import { objectOperations } from './features/objects/operations.ts'
import { recordOperations } from './features/records/operations.ts'
import { createRegistry } from './kernel/registry.ts'
import type { Context } from './shared/context.ts'

/** Every operation of the service. What is not in this list does not exist. */
export const registry = createRegistry<Context>([
  ...discoveryOperations,
  ...objectOperations,
  ...recordOperations,
  ...diagnosticsOperations,
])
