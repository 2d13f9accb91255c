import { lookup } from 'node:dns/promises'
import { type BlockList, isIP } from 'node:net'
import type { CameraNetworks } from '../config/camera-networks.js'
import { atMost } from './delay.js'
import { shortage, SystemLimitError } from './system-limit.js'
import { closedFor, holds, meaningsOf, nearOf, networkList, type NearNetwork } from './address-table.js'

/** How near an address is. What a stream refers to may be as far as the stream itself, or farther. */
export type Nearness = NearNetwork | 'public'

/** An address as a socket is opened with it. */
export type CheckedAddress = Readonly<{ address: string; family: 4 | 6 }>

export type Resolution =
  | Readonly<{ kind: 'open'; addresses: readonly CheckedAddress[]; nearness: Nearness }>
  | Readonly<{ kind: 'refused'; reason: string }>
  | Readonly<{ kind: 'unknown' }>

/** Every address of a host name, as the system knows them; none when it knows none. */
export type HostLookup = (host: string) => Promise<readonly CheckedAddress[]>

const rank: Readonly<Record<Nearness, number>> = { loopback: 0, private: 1, public: 2 }
const lookupMs = 10_000

/** `loopbackClosed`: for cameras named by somebody who may have no other way to the services of this machine. */
export type AddressSettings = CameraNetworks & Readonly<{ loopbackClosed?: boolean }>

/**
 * Which addresses cameras may be opened at: any but link-local ones, multicast and the metadata services of clouds, as the settings
 * change it. Names are looked up here, and it is the address that counts, in whatever form it is written.
 */
export class AddressPolicy {
  readonly #allow: BlockList
  readonly #deny: BlockList
  readonly #loopbackClosed: boolean

  constructor(
    { allow, deny, loopbackClosed = false }: AddressSettings = { allow: [], deny: [] },
    readonly lookUp: HostLookup = systemLookup,
  ) {
    this.#allow = networkList(allow)
    this.#deny = networkList(deny)
    this.#loopbackClosed = loopbackClosed
  }

  /** @returns a clause such as `is link-local`, or undefined when the address may be opened. */
  refusal(address: string): string | undefined {
    if (meaningsOf(address).some((one) => holds(this.#deny, one))) return 'is in cameraNetworks.deny'
    if (holds(this.#allow, address)) return undefined
    const isOurs = this.#loopbackClosed && nearOf(address) === 'loopback'
    const kind = closedFor(address) ?? (isOurs ? 'this machine itself' : undefined)
    return kind === undefined ? undefined : `is ${kind}`
  }

  /**
   * Looks a host up; an address stands for itself. @throws what the look-up throws.
   *
   * @param host - name or address, IPv6 with or without brackets.
   * @param from - nearness of the stream that refers to this host: nearer addresses are refused.
   * @returns only addresses that may be opened; refused when there are others alone.
   */
  async resolve(host: string, from: Nearness = 'loopback'): Promise<Resolution> {
    const found = await this.#addressesOf(plainHost(host))
    if (found.length === 0) return { kind: 'unknown' }
    const verdicts = found.map((given) => ({ ...given, reason: this.refusalFrom(given.address, from) }))
    const open = verdicts.filter(({ reason }) => reason === undefined)
    if (open.length === 0) return { kind: 'refused', reason: verdicts[0]?.reason ?? '' }
    const nearness =
      open.map(({ address }) => nearOf(address)).sort((a, b) => rank[a] - rank[b])[0] ?? 'public'
    return { kind: 'open', nearness, addresses: open.map(({ address, family }) => ({ address, family })) }
  }

  async #addressesOf(host: string): Promise<readonly CheckedAddress[]> {
    const family = isIP(host)
    return family === 0 ? this.lookUp(host) : [{ address: host, family: family === 6 ? 6 : 4 }]
  }

  /** @returns a clause such as `10.0.0.7 is private, and the stream is public`, or undefined when a stream may lead to the address. */
  refusalFrom(address: string, from: Nearness): string | undefined {
    const refusal = this.refusal(address)
    if (refusal !== undefined) return `${address} ${refusal}`
    const nearness = nearOf(address)
    return rank[nearness] < rank[from] ? `${address} is ${nearness}, and the stream is ${from}` : undefined
  }
}

/** The address that a host of a URL spells in any form ffmpeg would take (`2852039166`, `0xa9.254.1`), else the host itself. */
export function plainHost(host: string): string {
  try {
    return new URL(
      `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}`,
    ).hostname.replace(/^\[|\]$/g, '')
  } catch {
    return host
  }
}

/** @throws SystemLimitError where there is no descriptor to ask with; the system says then that no such name is known. */
async function systemLookup(host: string): Promise<readonly CheckedAddress[]> {
  const found = await atMost(
    lookupMs,
    lookup(host, { all: true }).catch(() => []),
  )
  const limit = found === undefined || found.length > 0 ? undefined : shortage()
  if (limit !== undefined) throw new SystemLimitError(`looking up ${host}`, limit)
  return (found ?? []).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}
