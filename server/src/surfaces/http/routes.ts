/**
 * Paths as operations declare them (`/v1/apps/{saasAppId}/records/{recordId}:restore`), as the router wants them, and as
 * the question "which methods does this path know?" wants them.
 *
 * A parameter is one segment. Where an action may follow it (`{recordId}:restore`), it holds no colon either: otherwise
 * `GET …/{recordId}` would also take `…/abc:restore`, and a wrong method on an action would look like a bad record id.
 */
export interface Route {
  readonly method: string
  readonly path: string
}

const parameter = /\{(\w+)\}/g

/** `…/records/{}`: the part of a path up to a parameter, with all parameter names taken out. */
function shapeUpTo(path: string, end: number): string {
  return path.slice(0, end).replace(parameter, '{}')
}

/** The shapes at whose end a colon action hangs. */
function shapesWithActions(paths: readonly string[]): ReadonlySet<string> {
  const shapes = new Set<string>()
  for (const path of paths) {
    const action = /\}:[^/]*$/.exec(path)
    if (action) shapes.add(shapeUpTo(path, action.index + 1))
  }
  return shapes
}

/** Writes paths for find-my-way: `:` starts a parameter, `::` is a colon, a pattern stands in parentheses. */
export function routerPaths(paths: readonly string[]): (path: string) => string {
  const shapes = shapesWithActions(paths)
  return (path) => {
    const escaped = path.replaceAll(':', '::')
    return escaped.replace(parameter, (whole, name: string, at: number) => {
      const end = at + whole.length
      const mayMeetAction = shapes.has(shapeUpTo(escaped, end)) || escaped.startsWith('::', end)
      return mayMeetAction ? `:${name}([^/:]+)` : `:${name}`
    })
  }
}

/** Answers which methods a path knows; asked only for requests that no route took. */
export function createMethodTable(routes: readonly Route[]): (pathname: string) => readonly string[] {
  const shapes = shapesWithActions(routes.map((route) => route.path))
  const methods = new Map<string, Set<string>>()
  for (const { method, path } of routes) {
    const known = methods.get(path) ?? new Set()
    methods.set(path, known.add(method))
    if (method === 'GET') known.add('HEAD')
  }
  const table = [...methods].map(([path, known]) => ({ pattern: patternOf(path, shapes), known }))
  return (pathname) => {
    const found = table.filter((row) => row.pattern.test(pathname)).flatMap((row) => [...row.known])
    return [...new Set(found)].sort()
  }
}

function patternOf(path: string, shapes: ReadonlySet<string>): RegExp {
  const source = path.split(/(\{\w+\})/).map((part, index, parts) => {
    if (index % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const end = parts.slice(0, index + 1).join('').length
    const mayMeetAction = shapes.has(shapeUpTo(path, end)) || path.startsWith(':', end)
    return mayMeetAction ? '[^/:]+' : '[^/]+'
  })
  return new RegExp(`^${source.join('')}$`)
}
