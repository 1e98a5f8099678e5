import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecure, type SecureContext } from 'node:tls'
import type { buildConnector } from 'undici'
import { isLoopbackAddress, isPublicAddress } from './addresses.ts'
import { FetchFailure, failureOf, tlsFailure } from './categories.ts'
import { hostOf } from './destination.ts'
import { resolveAddresses } from './resolve.ts'

export interface ConnectorOptions {
  readonly allowLoopback: boolean
  /** `ip` or `ip:port` each; none: those of the system. */
  readonly dnsServers: readonly string[]
  /** For DNS, TCP and TLS together. */
  readonly connectTimeoutMs: number
  /** The authorities to trust. */
  readonly secureContext: () => SecureContext
}

/** Before the next address of a name is tried; Node's 250 ms would give up on receivers a continent away. */
const nextAddressAfterMs = 1000

/**
 * Opens the connections of undici. A name is resolved once, every address is checked, and only those are connected to:
 * there is no second look at the DNS that could say something else (DNS rebinding). The name stays in SNI, in the check of
 * the certificate and in `Host`. One private address among public ones refuses the name.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const isAllowed = (address: string) =>
    isPublicAddress(address) || (options.allowLoopback && isLoopbackAddress(address))

  async function open(target: buildConnector.Options): Promise<Socket> {
    const startedAt = performance.now()
    const host = hostOf(target)
    const addresses = await resolveAddresses(host, options.dnsServers, options.connectTimeoutMs)
    if (!addresses.every(isAllowed)) throw new FetchFailure('blocked_destination')
    const secure = target.protocol === 'https:'
    const lookup: LookupFunction = (_name, { all }, done) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }))
      if (all) done(null, found)
      else done(null, found[0]!.address, found[0]!.family)
    }
    const to = {
      host,
      port: Number(target.port) || (secure ? 443 : 80),
      lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: nextAddressAfterMs,
    }
    const socket = secure
      ? connectSecure({
          ...to,
          ...(isIP(host) === 0 && { servername: host }),
          secureContext: options.secureContext(),
          ALPNProtocols: ['http/1.1'],
        })
      : connectPlain(to)
    return connected(socket, secure, options.connectTimeoutMs - (performance.now() - startedAt))
  }

  function connected(socket: Socket, secure: boolean, withinMs: number): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    let isHandshaking = false
    const late = setTimeout(() => socket.destroy(new FetchFailure('timeout')), withinMs)
    socket.setNoDelay(true)
    // Stays: between here and undici's own listener an error must not end the process.
    socket.on('error', (error) => reject(isHandshaking ? tlsFailure(error) : failureOf(error)))
    socket.once('close', () => {
      clearTimeout(late)
      reject(new FetchFailure('connection_reset'))
    })
    const finish = () => {
      isHandshaking = false
      clearTimeout(late)
      resolve(socket)
    }
    socket.once('connect', () => {
      // The addresses were checked. This holds should Node ever connect to another one.
      if (!isAllowed(socket.remoteAddress ?? '')) return socket.destroy(new FetchFailure('blocked_destination'))
      isHandshaking = secure
      return secure || finish()
    })
    if (secure) socket.once('secureConnect', finish)
    return promise
  }

  return (target, callback) => {
    open(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    )
  }
}
