import { deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { expect, it } from 'vitest'
import { ImageDecodeBackend } from '../../../src/backends/image-decode/image-decode-backend.js'
import { packStrings } from '../../../src/tensors/elements.js'
import { contextOf, openWith, requestOf } from '../../support/direct-model.js'

const pixels = Uint8Array.from({ length: 4 * 3 * 3 }, (_, at) => at * 7)
const raw = { raw: { width: 4, height: 3, channels: 3 } } as const

const decoder = () => openWith(new ImageDecodeBackend(), contextOf('image_decode'))
const asked = (file: Uint8Array) =>
  requestOf([{ name: 'image', datatype: 'BYTES', shape: [1], data: packStrings([file]) }])

it('gives the pixels of a PNG as they are', async () => {
  const [picture] = await (await decoder()).infer(asked(await sharp(pixels, raw).png().toBuffer()))
  expect(picture).toMatchObject({ name: 'pixels', datatype: 'UINT8', shape: [3, 4, 3] })
  expect([...(picture?.data ?? [])]).toEqual([...pixels])
})

it('turns a JPEG as its orientation says, and grey into three colours', async () => {
  const model = await decoder()
  const turned = await sharp(pixels, raw).jpeg().withMetadata({ orientation: 6 }).toBuffer()
  expect((await model.infer(asked(turned)))[0]?.shape).toEqual([4, 3, 3])
  const grey = await sharp(pixels, raw).greyscale().jpeg().toBuffer()
  expect((await model.infer(asked(grey)))[0]?.shape).toEqual([3, 4, 3])
})

it('takes the bytes of the file as uint8 where the configuration says so', async () => {
  const config = { input: [{ name: 'image', data_type: 'TYPE_UINT8', dims: [-1] }] } as const
  const model = await openWith(new ImageDecodeBackend(), contextOf('image_decode', config))
  const file = await sharp(pixels, raw).png().toBuffer()
  const request = requestOf([{ name: 'image', datatype: 'UINT8', shape: [file.length], data: file }])
  expect((await model.infer(request))[0]?.shape).toEqual([3, 4, 3])
})

/** A PNG that says it is so large, and holds next to nothing. */
function bomb(width: number, height: number): Uint8Array {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    const crc = Buffer.alloc(4)
    crc.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, crc])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(1024))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}

it.each([
  ['a bomb', () => bomb(30_000, 30_000), '30000 x 30000 pixels'],
  ['garbage', () => Buffer.from('not a picture'), 'cannot be decoded'],
  ['nothing', () => Buffer.alloc(0), 'cannot be decoded'],
  ['another format', () => sharp(pixels, raw).webp().toBuffer(), 'it is webp, not JPEG or PNG'],
  [
    'half a file',
    async () => (await sharp(pixels, raw).resize(200, 200).png().toBuffer()).subarray(0, 120),
    'cannot be decoded',
  ],
])('refuses %s as the caller’s mistake', async (_, file, problem) => {
  const model = await decoder()
  await expect(model.infer(asked(await file()))).rejects.toMatchObject({
    status: 'INVALID_ARG',
    message: expect.stringContaining(problem) as string,
  })
})

it('refuses batches when it is loaded', async () => {
  await expect(new ImageDecodeBackend().open(contextOf('d', { max_batch_size: 4 }))).rejects.toThrow(
    'one picture at a time',
  )
})
