import { behaviours, nativeObjects } from './features/modules/native-objects.ts'

/** The native modules as the service is put together with them; their operations are among those of `operations.ts`. */
export const nativeModules = { objects: nativeObjects, behaviours } as const
