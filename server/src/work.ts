import { recoverKind } from './features/webhooks/recovery.ts'
import { exportKind } from './shared/exchange/export.ts'
import { importKind } from './shared/exchange/import.ts'
import type { WorkKind } from './shared/operations/kind.ts'

/** Every kind of work that goes on after the answer. What is not in this list is carried on by nobody. */
export const workKinds: readonly WorkKind[] = [exportKind, importKind, recoverKind]
