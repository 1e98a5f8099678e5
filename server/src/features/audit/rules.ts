/**
 * The least UUIDv7 of a moment in milliseconds: entries of that moment and later have this id or a greater one. Moments
 * before 1970 are 1970, since no entry is older.
 */
export function leastIdOf(moment: number): string {
  const time = Math.max(0, moment).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}
