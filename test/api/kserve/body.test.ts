import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { deflateSync, gzipSync } from 'node:zlib'
import { expect, it, onTestFinished, vi } from 'vitest'
import { BodyTooLargeError, inflated, readBody } from '../../../src/api/kserve/body.js'

const bytes = Buffer.alloc(5_000_001)
for (let i = 0; i < bytes.byteLength; i++) bytes[i] = (i * 2_654_435_761) >>> 24

/** A request whose body comes in these pieces, and does not tell its length. */
function request(pieces: readonly Uint8Array[]): IncomingMessage {
  return Object.assign(Readable.from(pieces), { headers: {} }) as unknown as IncomingMessage
}

function cut(body: Buffer, size: number): Buffer[] {
  const count = Math.ceil(body.byteLength / size)
  return Array.from({ length: count }, (_, i) => body.subarray(i * size, (i + 1) * size))
}

it.each([
  [0, 1],
  [10, 1],
  [65_536, 65_536],
  [65_537, 65_536],
  [1_000_003, 1],
  [1_048_576, 1_000],
  [5_000_001, 65_536],
  [5_000_001, 1_048_577],
  [5_000_001, 5_000_001],
])('puts a body of %i bytes together that comes in pieces of %i', async (length, size) => {
  const body = bytes.subarray(0, length)
  const read = await readBody(request(cut(body, size)), length)
  expect(Buffer.compare(read, body)).toBe(0)
})

it('refuses a body with one byte too many, wherever it comes', async () => {
  for (const size of [1, 1_000, 100_000])
    await expect(readBody(request(cut(bytes.subarray(0, 100_000), size)), 99_999), `${size}`).rejects.toThrow(
      BodyTooLargeError,
    )
})

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
] as const)('unpacks %s of any length, up to the limit', async (encoding, pack) => {
  for (const length of [0, 1, 300_000, 5_000_001]) {
    const body = bytes.subarray(0, length)
    expect(Buffer.compare(await inflated(pack(body), encoding, length), body)).toBe(0)
  }
  await expect(inflated(pack(bytes), encoding, bytes.byteLength - 1)).rejects.toThrow(BodyTooLargeError)
  for (const damaged of [pack(bytes).subarray(0, 1_000), Buffer.from('not packed'), Buffer.alloc(0)])
    await expect(inflated(damaged, encoding, bytes.byteLength)).rejects.toMatchObject({
      status: 'INVALID_ARG',
      message: `unable to decompress the request body as ${encoding}`,
    })
})

it('does not call it damaged data when there is no memory for what is unpacked', async () => {
  const packed = gzipSync(bytes)
  const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation(() => {
    throw new RangeError('Array buffer allocation failed')
  })
  onTestFinished(() => allocate.mockRestore())
  await expect(inflated(packed, 'gzip', 10_000_000)).rejects.toThrow(RangeError)
})
