import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import type { CameraNetworks } from '../config/camera-networks.js'
import { addNetwork } from '../config/network.js'
import { atMost } from '../lifecycle/delay.js'
import { shortage, SystemLimitError } from '../lifecycle/system-limit.js'

/** How near an address is. What a stream refers to may be as far as the stream itself, or farther. */
export type Nearness = 'loopback' | 'private' | 'public'

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

const loopback = networks(['127.0.0.0/8', '::1'])
const near = networks([
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['fc00::/7', 'fe80::/10'],
])

/** No camera answers there, and what answers there gives away keys of the machine. */
const closed: readonly (readonly [string, BlockList])[] = [
  [
    'a metadata service of a cloud',
    networks([
      '169.254.169.254',
      '169.254.170.2',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
      'fd00:ec2::254',
    ]),
  ],
  // With the two ways in which IPv6 spells addresses of IPv4.
  ['link-local', networks(['169.254.0.0/16', 'fe80::/10', '64:ff9b::a9fe:0/112', '2002:a9fe::/32'])],
  ['not an address of one machine', networks(['0.0.0.0/8', '224.0.0.0/3', '::', 'ff00::/8'])],
]

/** `loopbackClosed`: for cameras named by somebody who may have no other way to the services of this machine. */
export type AddressSettings = CameraNetworks & Readonly<{ loopbackClosed?: boolean }>

/**
 * Which addresses cameras may be opened at: any but link-local ones, multicast and the metadata services of clouds, as the settings
 * change it. Names are looked up here, and it is the address that counts, in whatever form it is written.
 */
export class AddressPolicy {
  readonly #allow: BlockList
  readonly #deny: BlockList
  readonly #closed: typeof closed

  constructor(
    { allow, deny, loopbackClosed = false }: AddressSettings = { allow: [], deny: [] },
    readonly lookUp: HostLookup = systemLookup,
  ) {
    this.#allow = networks(allow)
    this.#deny = networks(deny)
    this.#closed = loopbackClosed ? [...closed, ['this machine itself', loopback]] : closed
  }

  /** @returns a clause such as `is link-local`, or undefined when the address may be opened. */
  refusal(address: string): string | undefined {
    if (contains(this.#deny, address)) return 'is in cameraNetworks.deny'
    if (contains(this.#allow, address)) return undefined
    const kind = this.#closed.find(([, list]) => contains(list, address))?.[0]
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
      open.map(({ address }) => nearnessOf(address)).sort((a, b) => rank[a] - rank[b])[0] ?? 'public'
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
    const nearness = nearnessOf(address)
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

export function nearnessOf(address: string): Nearness {
  if (contains(loopback, address)) return 'loopback'
  return contains(near, address) ? 'private' : 'public'
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

function networks(list: readonly string[]): BlockList {
  const blockList = new BlockList()
  for (const network of list) addNetwork(blockList, network)
  return blockList
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
