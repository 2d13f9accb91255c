import { describe, expect, it } from 'vitest'
import { AddressPolicy, type CheckedAddress } from '../../src/lifecycle/address-policy.js'

const v4 = (...addresses: string[]): CheckedAddress[] => addresses.map((address) => ({ address, family: 4 }))

describe('AddressPolicy', () => {
  const usual = new AddressPolicy()

  it.each([
    '127.0.0.1',
    '::1',
    '10.0.0.7',
    '192.168.1.20',
    '172.31.0.9',
    '100.64.3.2',
    '203.0.113.5',
    '2001:db8::7',
    'fd12::7',
  ])('opens cameras at %s', (address) => expect(usual.refusal(address)).toBeUndefined())

  it.each([
    ['169.254.169.254', 'metadata'],
    ['::ffff:169.254.169.254', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['169.254.1.7', 'link-local'],
    ['fe80::1', 'link-local'],
    ['64:ff9b::a9fe:a9fe', 'metadata'],
    ['64:ff9b::a9fe:1', 'link-local'],
    ['0.0.0.0', 'not an address of one machine'],
    ['::', 'not an address of one machine'],
    ['239.1.2.3', 'not an address of one machine'],
    ['255.255.255.255', 'not an address of one machine'],
    ['ff02::1', 'not an address of one machine'],
  ])('refuses %s', (address, kind) => expect(usual.refusal(address)).toContain(kind))

  it('opens what the settings allow, and nothing they deny, allowed or not', () => {
    const policy = new AddressPolicy({
      allow: ['169.254.0.0/16', 'fe80::/10'],
      deny: ['127.0.0.0/8', '169.254.169.254'],
    })
    expect(policy.refusal('169.254.1.7')).toBeUndefined()
    expect(policy.refusal('fe80::1')).toBeUndefined()
    expect(policy.refusal('169.254.169.254')).toBe('is in cameraNetworks.deny')
    expect(policy.refusal('::ffff:127.0.0.1')).toBe('is in cameraNetworks.deny')
    expect(policy.refusal('::1')).toBeUndefined()
    expect(policy.refusal('64:ff9b::7f00:1')).toBe('is in cameraNetworks.deny')
  })

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::'])(
    'S18: takes %s for this machine where that is closed',
    (address) => {
      const policy = new AddressPolicy({ allow: [], deny: [], loopbackClosed: true })
      expect(policy.refusal(address)).toBe('is this machine itself')
    },
  )

  it.each(['2852039166', '0xa9fea9fe', '169.254.43518', '[::ffff:a9fe:a9fe]', '169.254.169.254.'])(
    'sees the address that %s spells',
    async (host) => expect(await usual.resolve(host)).toMatchObject({ kind: 'refused' }),
  )

  it('S3: leaves out the addresses of a name that are refused, and refuses a name that has no other', async () => {
    const names: Record<string, string[]> = {
      both: ['169.254.169.254', '10.0.0.7'],
      bad: ['169.254.169.254'],
    }
    const policy = new AddressPolicy(undefined, (host) => Promise.resolve(v4(...(names[host] ?? []))))
    expect(await policy.resolve('both')).toEqual({
      kind: 'open',
      addresses: v4('10.0.0.7'),
      nearness: 'private',
    })
    expect(await policy.resolve('bad')).toEqual({
      kind: 'refused',
      reason: '169.254.169.254 is a metadata service of a cloud',
    })
    expect(await policy.resolve('none')).toEqual({ kind: 'unknown' })
  })

  it.each([
    ['public', '203.0.113.5', true],
    ['public', '10.0.0.7', false],
    ['public', '127.0.0.1', false],
    ['private', '203.0.113.5', true],
    ['private', '192.168.1.20', true],
    ['private', '::1', false],
    ['loopback', '127.0.0.1', true],
  ] as const)('lets a %s stream lead to %s: %s', async (from, address, open) => {
    expect((await usual.resolve(address, from)).kind).toBe(open ? 'open' : 'refused')
  })
})
