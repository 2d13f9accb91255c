import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Crc } from './crc.js'

/** What the content of an object is checked by: a checksum that the store tells, and what is computed beside it. */
export type ObjectDigest = Readonly<{
  /** As the store calls it, for people. */
  name: string
  expected: string
  update(bytes: Uint8Array): void
  /** Of all that was added, in the letters of `expected`. */
  found(): string
}>

/** In the order of trust: those that nobody can forge first. */
const checksums = ['sha256', 'sha1', 'crc64nvme', 'crc32c', 'crc32'] as const

/**
 * Which digest an answer brings: a checksum of the whole object, else the ETag, which is the MD5 of one that was uploaded in one piece and
 * is not encrypted with a key of the customer's.
 *
 * @param etag - without quotes.
 * @returns undefined where the store tells none.
 */
export function digestOf(headers: Headers, etag: string): ObjectDigest | undefined {
  // Of one in parts it may be the checksum of the checksums.
  const ofParts = headers.get('x-amz-checksum-type') === 'COMPOSITE'
  for (const name of ofParts ? [] : checksums) {
    const expected = headers.get(`x-amz-checksum-${name}`)
    if (expected !== null && !expected.includes('-')) return { name, expected, ...counting(name) }
  }
  const encryption = headers.get('x-amz-server-side-encryption') ?? ''
  const isMd5 =
    /^[0-9a-f]{32}$/i.test(etag) &&
    !encryption.startsWith('aws:kms') &&
    !headers.has('x-amz-server-side-encryption-customer-algorithm')
  if (!isMd5) return undefined
  const hash = createHash('md5')
  return {
    name: 'ETag (MD5)',
    expected: etag.toLowerCase(),
    update: (bytes) => void hash.update(bytes),
    found: () => hash.digest('hex'),
  }
}

function counting(name: (typeof checksums)[number]): Pick<ObjectDigest, 'update' | 'found'> {
  if (name === 'sha256' || name === 'sha1') {
    const hash = createHash(name)
    return { update: (bytes) => void hash.update(bytes), found: () => hash.digest('base64') }
  }
  if (name === 'crc32') return countingCrc32()
  const crc = new Crc(name)
  return { update: (bytes) => crc.update(bytes), found: () => crc.digest().toString('base64') }
}

function countingCrc32(): Pick<ObjectDigest, 'update' | 'found'> {
  let sum = 0
  return {
    update: (bytes) => (sum = crc32(bytes, sum)),
    found: () => {
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(sum)
      return bytes.toString('base64')
    },
  }
}
