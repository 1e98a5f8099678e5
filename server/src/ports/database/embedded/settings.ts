import type { Endpoint } from './socket.ts'

/**
 * The settings of the server, given on its command line.
 *
 * There they outrank whatever a file in the cluster says, and `postmaster.opts` records them, which shows whether a
 * server that a killed service left behind runs with what this version wants. Whoever wants others runs a server of
 * their own (`DATABASE_URL`).
 */
export function serverArguments(clusterDir: string, endpoint: Endpoint, memoryBytes: number): string[] {
  const settings: Record<string, string | number> = {
    ...listening(endpoint),
    max_connections: 100,
    // Schemas have a table per object, and one transaction (a migration, a backup) may lock all of them.
    max_locks_per_transaction: 256,
    shared_buffers: `${Math.floor(sharedBytes(memoryBytes) / megabyte)}MB`,
    random_page_cost: 1.1, // solid-state disks
    jit: 'off', // queries are short; compiling one costs more than it saves
    compute_query_id: 'off',
    io_method: 'worker', // the default of PostgreSQL 18, hence the tested one, and the same on every platform
    // What was acknowledged survives a power cut.
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    wal_compression: 'on',
    max_wal_size: '1GB',
    checkpoint_timeout: '15min',
    TimeZone: 'UTC',
    cluster_name: 'portico',
    // A failed statement is the service's to log, under its correlation id; here it would put customers' values into
    // a file. What concerns the server itself comes at level LOG or above.
    log_destination: 'stderr',
    logging_collector: 'off',
    log_min_messages: 'log',
    log_checkpoints: 'off',
    log_timezone: 'UTC',
    // A query whose client was killed ends within two seconds instead of holding its locks to its own end.
    ...(process.platform !== 'win32' && { client_connection_check_interval: '2s' }),
  }
  return ['-D', clusterDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}

const megabyte = 1024 * 1024

/**
 * An eighth of the memory, up to 2 GB, and of a small one a quarter, up to 256 MB. The rest is for the service, and for the
 * operating system, which keeps what is read as well.
 */
function sharedBytes(memoryBytes: number): number {
  const ofSmall = Math.min(256 * megabyte, memoryBytes / 4)
  const ofLarge = Math.min(2048 * megabyte, memoryBytes / 8)
  return Math.max(16 * megabyte, ofSmall, ofLarge)
}

function listening({ host, port }: Endpoint): Record<string, string | number> {
  if (!host.startsWith('/')) return { listen_addresses: host, port, unix_socket_directories: '' }
  // The setting is a list; quotes let a folder's name hold a comma.
  const dirs = `"${host.replaceAll('"', '""')}"`
  return { listen_addresses: '', port, unix_socket_directories: dirs, unix_socket_permissions: '0700' }
}
