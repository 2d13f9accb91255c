import { BlockList, isIP } from 'node:net'
import { addNetwork } from '../config/network.js'

/** How near an address is, where it is not public. */
export type NearNetwork = 'loopback' | 'private'

type Row = Readonly<{
  networks: readonly string[]
  near?: NearNetwork
  /** Why no camera is opened there, as the rest of "is ...". The first row that holds an address tells. */
  closed?: string
}>

/**
 * What addresses are, by the registries of IANA (special-purpose addresses of IPv4 and IPv6) and the papers of clouds. The only place that
 * knows: whatever an address spells besides (`meaningsOf`) is looked up here as well.
 */
const table: readonly Row[] = [
  {
    // No camera answers there, and what answers gives away keys of the machine.
    networks: [
      // AWS, Azure, Google, OpenStack and most others; containers and pods of AWS; Tencent; Scaleway
      ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.0.23', '169.254.42.42'],
      // Alibaba; the host of Azure; Oracle
      ...['100.100.100.200', '168.63.129.16', '192.0.0.192'],
      // Services of AWS (254 metadata, 23 pods); Google; Oracle; OpenStack; Scaleway
      ...['fd00:ec2::/32', 'fd20:ce::/64', 'fd00:c1::a9fe:a9fe', 'fe80::a9fe:a9fe', 'fd00:42::42'],
    ],
    near: 'private',
    closed: 'a metadata service of a cloud',
  },
  { networks: ['169.254.0.0/16', 'fe80::/10'], near: 'private', closed: 'link-local' },
  {
    networks: ['0.0.0.0/8', '224.0.0.0/3', '::', '100::/64', 'ff00::/8'],
    closed: 'not an address of one machine',
  },
  { networks: ['127.0.0.0/8', '::1'], near: 'loopback' },
  {
    networks: [
      ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '198.18.0.0/15', '192.0.0.0/24'],
      ...['fc00::/7', 'fec0::/10'],
    ],
    near: 'private',
  },
]

const rows = table.map(({ networks, ...row }) => ({ ...row, list: networkList(networks) }))

/** Why no camera is opened at an address, whatever the settings say of it; undefined where one may be. */
export function closedFor(address: string): string | undefined {
  const meanings = meaningsOf(address)
  return rows.find(({ closed, list }) => closed !== undefined && meanings.some((one) => holds(list, one)))
    ?.closed
}

/** How near an address is by what is nearest of all that it spells. */
export function nearOf(address: string): NearNetwork | 'public' {
  const nearest = meaningsOf(address).map(
    (one) => rows.find(({ near, list }) => near !== undefined && holds(list, one))?.near,
  )
  if (nearest.includes('loopback')) return 'loopback'
  return nearest.includes('private') ? 'private' : 'public'
}

/** @throws where one is neither an address nor a network. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) addNetwork(list, network)
  return list
}

/** Whether a list has an address, by itself. */
export function holds(list: BlockList, address: string): boolean {
  return list.check(withoutZone(address), isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** An address, and those of IPv4 that it carries to whoever translates it: NAT64, 6to4, Teredo, ISATAP and the like. */
export function meaningsOf(address: string): readonly string[] {
  if (isIP(address) !== 6) return [address]
  const plain = withoutZone(address)
  return [plain, ...carriedBy(groupsOf(plain))]
}

/** `fe80::1%eth0` */
function withoutZone(address: string): string {
  return address.split('%')[0] ?? address
}

/** The eight groups of an address of IPv6. */
function groupsOf(address: string): readonly number[] {
  // Zeros, digits and dots in one form.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const numbers = (part: string) =>
    part.split(':').flatMap((group) => (group === '' ? [] : [Number.parseInt(group, 16)]))
  const first = numbers(head)
  const last = numbers(tail ?? '')
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}

function carriedBy(groups: readonly number[]): readonly string[] {
  const at = (index: number) => groups[index] ?? 0
  const starts = (...prefix: readonly number[]) => prefix.every((group, index) => at(index) === group)
  const last = v4(at(6), at(7))
  const zeros = starts(0, 0, 0, 0)
  // RFC 4291: mapped, compatible; RFC 2765: translated. Not :: and ::1, which are addresses of their own.
  if (zeros && at(4) === 0 && (at(5) === 0xffff || (at(5) === 0 && at(6) !== 0))) return [last]
  if (zeros && at(4) === 0xffff && at(5) === 0) return [last]
  // RFC 6052: 64:ff9b::/96
  if (starts(0x64, 0xff9b, 0, 0, 0, 0)) return [last]
  // RFC 8215: 64:ff9b:1::/48 is split as each network likes, and a group of zeros bits lies in the middle (RFC 6052, 2.2).
  if (starts(0x64, 0xff9b, 1))
    return [
      last,
      v4(at(3), ((at(4) & 0xff) << 8) | (at(5) >> 8)),
      v4(((at(3) & 0xff) << 8) | (at(4) & 0xff), at(5)),
      v4(((at(4) & 0xff) << 8) | (at(5) >> 8), ((at(5) & 0xff) << 8) | (at(6) >> 8)),
    ]
  // RFC 3056: 6to4
  if (at(0) === 0x2002) return [v4(at(1), at(2))]
  // RFC 4380: Teredo has its server, and the client with all bits turned
  if (starts(0x2001, 0)) return [v4(at(2), at(3)), v4(at(6) ^ 0xffff, at(7) ^ 0xffff)]
  // RFC 5214: ISATAP
  if ((at(4) & ~0x200) === 0 && at(5) === 0x5efe) return [last]
  return []
}

function v4(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}
