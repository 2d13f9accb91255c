import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { MessageAssembly } from '../../../src/api/grpc/message-assembly.js'

function framed(bytes: Buffer, compressed = 0): Buffer {
  const prefix = Buffer.of(compressed, 0, 0, 0, 0)
  prefix.writeUInt32BE(bytes.byteLength, 1)
  return Buffer.concat([prefix, bytes])
}

const sent = [framed(Buffer.from('first')), framed(Buffer.alloc(0)), framed(Buffer.from('third'), 1)]
const all = Buffer.concat(sent)

it.each([1, 2, 3, 4, 5, 6, 7, 11, all.byteLength])(
  'puts messages together from pieces of %d bytes',
  (size) => {
    const assembly = new MessageAssembly(100)
    const whole: Buffer[] = []
    for (let at = 0; at < all.byteLength; at += size)
      whole.push(...assembly.write(all.subarray(at, at + size)))
    expect(whole).toEqual(sent)
  },
)

it('gives a large message in a buffer of its own, so that it can move', () => {
  const message = framed(Buffer.alloc(3_000_000, 'abcdefg'))
  const assembly = new MessageAssembly(3_000_000)
  const whole: Buffer[] = []
  for (let at = 0; at < message.byteLength; at += 16_384)
    whole.push(...assembly.write(message.subarray(at, at + 16_384)))
  expect(whole.map((each) => each.equals(message))).toEqual([true])
  expect(whole[0]?.buffer.byteLength).toBe(message.byteLength)
})

it('allocates no more for a message than has come, but for a megabyte', () => {
  const promised = framed(Buffer.alloc(0))
  promised.writeUInt32BE(2 ** 31, 1)
  const before = process.memoryUsage().arrayBuffers
  const assemblies = Array.from({ length: 20 }, () => new MessageAssembly(2 ** 32))
  for (const assembly of assemblies) assembly.write(promised)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40 * 1024 ** 2)
})

it('refuses a message that is too large before it comes, in the words of the library', () => {
  const assembly = new MessageAssembly(4)
  expect(() => assembly.write(framed(Buffer.from('first')))).toThrow(
    'Received message larger than max (5 vs 4)',
  )
})

it('keeps nothing of a message that is whole', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const assembly = new MessageAssembly(1_000_000)
  const write = (bytes: Buffer) => {
    assembly.write(bytes)
    return new WeakRef(bytes.buffer)
  }
  const piece = write(framed(Buffer.alloc(100_000)))
  await turn()
  collect()
  expect(piece.deref()).toBeUndefined()
  expect(assembly.write(sent[0]!)).toEqual([sent[0]])
})
