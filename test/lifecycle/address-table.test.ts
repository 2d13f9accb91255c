import { describe, expect, it } from 'vitest'
import { closedFor, meaningsOf, nearOf } from '../../src/lifecycle/address-table.js'

describe('addresses at which no camera is opened', () => {
  it.each([
    ...['169.254.169.254', '169.254.170.23', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fe80::a9fe:a9fe%eth0', 'fd00:c1::a9fe:a9fe'],
  ])('S18: has %s, a metadata service', (address) => expect(closedFor(address)).toContain('metadata'))

  /** Ways of IPv6 to spell addresses of IPv4, here 169.254.169.254. */
  it.each([
    ['mapped', '::ffff:169.254.169.254'],
    ['mapped, in groups', '0:0:0:0:0:FFFF:A9FE:A9FE'],
    ['compatible', '::a9fe:a9fe'],
    ['translated', '::ffff:0:a9fe:a9fe'],
    ['NAT64', '64:ff9b::169.254.169.254'],
    ['NAT64 of a network, /96', '64:ff9b:1::a9fe:a9fe'],
    ['NAT64 of a network, /48', '64:ff9b:1:a9fe:a9:fe00::'],
    ['NAT64 of a network, /56', '64:ff9b:1:a9:fe:a9fe::'],
    ['NAT64 of a network, /64', '64:ff9b:1:0:a9:fea9:fe00::'],
    ['6to4', '2002:a9fe:a9fe::1'],
    ['Teredo, its client', '2001:0:102:304::5601:5601'],
    ['Teredo, its server', '2001:0:a9fe:a9fe::1'],
    ['ISATAP', '2001:db8::200:5efe:a9fe:a9fe'],
  ])('S18: has the metadata service in the form %s', (_, address) =>
    expect(closedFor(address)).toContain('metadata'),
  )

  it.each([
    ['64:ff9b::7f00:1', 'loopback'],
    ['2002:7f00:1::', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['2002:c0a8:107::1', 'private'],
    ['64:ff9b::a00:7', 'private'],
    ['fd12::7', 'private'],
    ['64:ff9b::cb00:7105', 'public'],
    ['2001:db8::7', 'public'],
    ['2a00:1450:4001::200e', 'public'],
  ])('S18: knows that %s is %s', (address, near) => {
    expect(nearOf(address)).toBe(near)
    expect(closedFor(address)).toBeUndefined()
  })

  it('S18: knows nothing but themselves of other addresses', () => {
    for (const address of ['10.0.0.7', '::1', '::', 'fe80::1', '2a00:1450::5eff:0:1'])
      expect(meaningsOf(address)).toEqual([address])
  })
})
