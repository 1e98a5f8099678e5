import { type buildConnector, Client, type Dispatcher, Pool } from 'undici'

const common = {
  pipelining: 1,
  allowH2: false,
  useMilo: false,
  maxHeaderSize: 16_384,
  // The one deadline of the request covers both.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const

const pooled = {
  ...common,
  // No limit: a request that waited for a connection behind a hanging one would spend its deadline unsent.
  connections: null,
  keepAliveTimeout: 4000,
  keepAliveMaxTimeout: 10_000,
  // A name that has moved is followed within a minute, however busy its connections are.
  clientTtl: 60_000,
} as const

/** Above it the groups that were idle longest lose their connections. */
const poolsMax = 1000

export interface Connections {
  /** Where to send one request for `origin`; `release` when it is over. */
  take(origin: string, group: string | undefined): { readonly dispatcher: Dispatcher; release(): void }
  /** Breaks all of them. */
  close(): Promise<void>
}

/**
 * Connections are reused within a group and never across groups: a receiver that two tenants share, or that stands behind
 * one front with another, could otherwise leave bytes on a connection that the next tenant takes for its answer. Without
 * a group each request has a connection of its own. A pool without connections is forgotten.
 */
export function createConnections(connect: buildConnector.connector): Connections {
  const pools = new Map<string, Pool>()
  const singles = new Set<Client>()

  function poolOf(origin: string, group: string): Pool {
    const key = `${origin} ${group}`
    const pool = pools.get(key) ?? new Pool(origin, { ...pooled, connect })
    if (!pools.has(key)) {
      const forgetUnused = () => {
        if (pools.get(key) === pool && pool.stats.connected === 0 && pool.stats.size === 0) forget(key, pool)
      }
      pool.on('disconnect', forgetUnused).on('connectionError', forgetUnused)
    }
    // Moved to the end: the map is in the order of last use.
    pools.delete(key)
    pools.set(key, pool)
    return pool
  }

  function forget(key: string, pool: Pool): void {
    pools.delete(key)
    void pool.close()
  }

  function evict(): void {
    for (const [key, pool] of pools) {
      if (pools.size <= poolsMax) return
      if (pool.stats.size === 0) forget(key, pool)
    }
  }

  return {
    take(origin, group) {
      if (group !== undefined) {
        const dispatcher = poolOf(origin, group)
        return { dispatcher, release: evict }
      }
      const dispatcher = new Client(origin, { ...common, connect })
      singles.add(dispatcher)
      return {
        dispatcher,
        release() {
          singles.delete(dispatcher)
          void dispatcher.destroy()
        },
      }
    },
    async close() {
      const all = [...pools.values(), ...singles]
      pools.clear()
      singles.clear()
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()))
    },
  }
}
