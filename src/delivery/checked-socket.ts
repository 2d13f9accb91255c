import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { type AddressPolicy, type CheckedAddress, plainHost } from '../lifecycle/address-policy.js'
import { SinkUnavailableError } from './sink-unavailable.js'

/** Where a sink connects to, and what its errors call it. */
export type FarPlace = Readonly<{
  sink: string
  /** Setting of the URL: `sinks.webhook.url`. */
  setting: string
  /** Name or address; one of IPv6 with or without brackets. */
  host: string
  port: number
}>

/** @throws SinkUnavailableError for a host that nobody knows, or that no sink may be connected to. */
export async function addressesOf(
  { sink, setting, host }: FarPlace,
  policy: AddressPolicy,
): Promise<readonly CheckedAddress[]> {
  const found = await policy.resolve(host)
  switch (found.kind) {
    case 'open':
      return found.addresses
    case 'refused':
      throw new SinkUnavailableError(
        sink,
        `${host} may not be connected to: ${found.reason}`,
        `Name another host in ${setting}, or let cameraNetworks.allow have its network.`,
      )
    case 'unknown':
      throw new SinkUnavailableError(
        sink,
        `no address is known for ${host}`,
        `Look for a typing error in ${setting}, and at the DNS of this machine.`,
      )
    default:
      return found satisfies never
  }
}

/**
 * A connection to one of the addresses that a name has now. The name is looked up once, and what was checked is what is connected to:
 * whoever answers for the name cannot have another address used than the one that was looked at.
 *
 * @param tls - undefined for a connection without TLS.
 * @throws SinkUnavailableError; what ends the connection before it stands; the reason of the signal.
 */
export async function connectChecked(
  place: FarPlace,
  policy: AddressPolicy,
  tls: ConnectionOptions | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  const addresses = await addressesOf(place, policy)
  signal.throwIfAborted()
  const host = plainHost(place.host)
  const to = { host, port: place.port, lookup: lookupOf(addresses) }
  // A name that is an address cannot be sent along (RFC 6066, 3).
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket = tls === undefined ? connectTcp(to) : connectTls({ ...to, ...name, ...tls })
  socket.setNoDelay(true)
  await established(socket, tls === undefined ? 'connect' : 'secureConnect', signal)
  return socket
}

/** Answers with what was found already. Node asks for all addresses, or for one. */
function lookupOf(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_, { all }, done) => {
    const [first] = addresses
    if (all === true) done(null, [...addresses])
    else done(null, first?.address ?? '', first?.family)
  }
}

async function established(socket: Socket, event: string, signal: AbortSignal): Promise<void> {
  let settle: (error?: Error) => void = () => undefined
  const failed = (error: Error) => settle(error)
  const closed = () => settle(new Error('the connection was closed before it stood'))
  const cut = () => settle(signal.reason as Error)
  const stands = new Promise<void>((resolve, reject) => {
    settle = (error) => (error === undefined ? resolve() : reject(error))
    socket
      .on('error', failed)
      .on('close', closed)
      .once(event, () => settle())
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) cut()
  })
  try {
    await stands
  } catch (error) {
    socket.on('error', () => undefined)
    socket.destroy()
    throw error
  } finally {
    socket.off('error', failed).off('close', closed)
    signal.removeEventListener('abort', cut)
  }
}
