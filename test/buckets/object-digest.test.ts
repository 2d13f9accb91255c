import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { digestOf } from '../../src/buckets/object-digest.js'

const content = Buffer.from('123456789')
const md5 = createHash('md5').update(content).digest('hex')

function checked(headers: Record<string, string>, etag = '') {
  const digest = digestOf(new Headers(headers), etag)
  digest?.update(content.subarray(0, 4))
  digest?.update(content.subarray(4))
  return digest && { name: digest.name, fits: digest.found() === digest.expected }
}

describe('digestOf', () => {
  it.each([
    ['sha256', createHash('sha256').update(content).digest('base64')],
    ['sha1', createHash('sha1').update(content).digest('base64')],
    ['crc32', 'y/Q5Jg=='],
    ['crc32c', Buffer.from('e3069283', 'hex').toString('base64')],
    ['crc64nvme', Buffer.from('ae8b14860a799888', 'hex').toString('base64')],
  ])('checks by %s, which goes before the ETag', (name, value) => {
    expect(checked({ [`x-amz-checksum-${name}`]: value }, 'f'.repeat(32))).toEqual({ name, fits: true })
    const other = Buffer.from('987654321')
    const digest = digestOf(new Headers({ [`x-amz-checksum-${name}`]: value }), '')
    digest?.update(other)
    expect(digest?.found()).not.toBe(value)
  })

  it('checks by the ETag where that is an MD5', () => {
    expect(checked({}, md5)).toEqual({ name: 'ETag (MD5)', fits: true })
    expect(checked({}, '0'.repeat(32))).toEqual({ name: 'ETag (MD5)', fits: false })
  })

  it.each<[string, Record<string, string>, string]>([
    ['an upload in parts', { 'x-amz-checksum-sha256': 'abc=-3' }, `${md5}-3`],
    [
      'a checksum of checksums',
      { 'x-amz-checksum-crc32': 'y/Q5Jg==', 'x-amz-checksum-type': 'COMPOSITE' },
      '',
    ],
    ['a key of KMS', { 'x-amz-server-side-encryption': 'aws:kms' }, md5],
    ['a key of the customer', { 'x-amz-server-side-encryption-customer-algorithm': 'AES256' }, md5],
  ])('knows of none for %s', (_, headers, etag) => {
    expect(checked(headers, etag)).toBeUndefined()
  })
})
