import type { Operation } from '../../../kernel/operation.ts'
import type { PlatformContext } from '../../../shared/platform-context.ts'
import { draftOperations } from './draft-operations.ts'
import { partOperations } from './part-operations.ts'
import { releaseOperations } from './release-operations.ts'

export const modellingOperations: readonly Operation<PlatformContext>[] = [
  ...draftOperations,
  ...partOperations,
  ...releaseOperations,
]
