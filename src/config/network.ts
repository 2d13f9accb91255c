import { type BlockList, isIP } from 'node:net'

/** @throws when the text is neither an address nor `address/prefix length`. */
export function addNetwork(list: BlockList, network: string): void {
  const [address = '', prefix, ...rest] = network.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  const bits = prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix)
  if (rest.length > 0 || prefix?.trim() === '' || isIP(address) === 0 || !Number.isInteger(bits))
    throw new RangeError(`"${network}" is no network`)
  list.addSubnet(address, bits, family)
}
