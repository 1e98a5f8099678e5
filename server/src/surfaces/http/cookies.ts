/** The value of the cookie in a `Cookie` header; null where it is absent or stands there twice. */
export function cookieOf(header: string | undefined, name: string): string | null {
  const values = (header ?? '')
    .split(';')
    .map((part) => part.trim().split('='))
    .filter(([key]) => key === name)
  return values.length === 1 ? values[0]!.slice(1).join('=') : null
}
