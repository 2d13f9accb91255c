import sharp from '../../src/lifecycle/sharp.js'

type MakeStill = () => Promise<Buffer>

const jpeg: MakeStill = async () => (await pattern()).jpeg({ quality: 85 }).toBuffer()
const png: MakeStill = async () => (await pattern()).png().toBuffer()

/** Whole, however much they look as if they were not. */
export const wholeStills: readonly (readonly [string, MakeStill])[] = [
  ['a JPEG', jpeg],
  ['a JPEG of which the last two bytes are missing', async () => (await jpeg()).subarray(0, -2)],
  ['a JPEG of which the last byte is missing', async () => (await jpeg()).subarray(0, -1)],
  ['a JPEG with zeros behind its end', async () => Buffer.concat([await jpeg(), Buffer.alloc(40)])],
  ['a JPEG that is filled up before its end', async () => filledUp(await jpeg())],
  [
    'a JPEG of all colours at full size',
    async () => (await pattern()).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer(),
  ],
  ['a JPEG of one colour', async () => (await pattern()).greyscale().jpeg().toBuffer()],
  ['a JPEG of odd size', async () => (await pattern()).resize(317, 11, { fit: 'fill' }).jpeg().toBuffer()],
  ['a JPEG of the coarsest kind', async () => (await pattern()).jpeg({ quality: 1 }).toBuffer()],
  ['a JPEG of the finest kind', async () => (await pattern()).jpeg({ quality: 100 }).toBuffer()],
  ['a progressive JPEG', async () => (await pattern()).jpeg({ progressive: true }).toBuffer()],
  [
    'a progressive JPEG of which the last two bytes are missing',
    async () =>
      (await pattern())
        .jpeg({ progressive: true })
        .toBuffer()
        .then((bytes) => bytes.subarray(0, -2)),
  ],
  ['a PNG', png],
  ['a PNG without its last chunk', async () => (await png()).subarray(0, -12)],
]

/** Of which something can be decoded. */
export const damagedStills: readonly (readonly [string, MakeStill, RegExp])[] = [
  [
    'a JPEG that ends in the middle',
    async () => half(await jpeg()),
    /^its data ends before the picture does$/,
  ],
  [
    'a JPEG of which some ten bytes are missing',
    async () => (await jpeg()).subarray(0, -12),
    /^its data ends before/,
  ],
  [
    'a JPEG that ends in the middle and says that it ends',
    async () => Buffer.concat([half(await jpeg()), Buffer.from([0xff, 0xd9])]),
    /^its data ends before/,
  ],
  [
    'a JPEG with other bytes at four fifths',
    async () => overwritten(await jpeg()),
    /^its data (does not fit|ends before) the picture/,
  ],
  [
    'a JPEG with a hole in it',
    async () => without(await jpeg(), 0.5, 100),
    /^its data (does not fit|ends before) the picture/,
  ],
  [
    'a progressive JPEG that ends in the middle',
    async () => half(await (await pattern()).jpeg({ progressive: true }).toBuffer()),
    /^it cannot be decoded whole: /,
  ],
  ['a PNG that ends in the middle', async () => half(await png()), /^it cannot be decoded whole: /],
  [
    'a PNG with other bytes at four fifths',
    async () => overwritten(await png()),
    /^it cannot be decoded whole: /,
  ],
  ['a PNG whose check sum is wrong', async () => wrongSum(await png()), /^it cannot be decoded whole: /],
]

const [width, height] = [640, 360]

/** Bars from black to white in all colours, with some noise: what a camera may see. */
async function pattern() {
  const rgb = Buffer.alloc(width * height * 3)
  let noise = 1
  for (let at = 0; at < rgb.length; at += 1) {
    const [x, y] = [Math.floor(at / 3) % width, Math.floor(at / 3 / width)]
    const bar = Math.floor((x * 8) / width) + Math.floor((y * 3) / height)
    noise = (noise * 48_271) % 0x7fff_ffff
    rgb[at] = ((bar >> (at % 3)) & 1) * 245 + (noise % 11)
  }
  return Promise.resolve(sharp(rgb, { raw: { width, height, channels: 3 } }))
}

const half = (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)

function overwritten(bytes: Buffer): Buffer {
  const at = Math.floor((bytes.length * 4) / 5)
  return Buffer.from(bytes).fill(0x55, at, at + 6)
}

function without(bytes: Buffer, share: number, count: number): Buffer {
  const at = Math.floor(bytes.length * share)
  return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + count)])
}

/** As of encoders that write words of four bytes. */
function filledUp(bytes: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, -2), Buffer.from([0xff, 0xff, 0xff]), bytes.subarray(-2)])
}

/** Of its first piece of data. */
function wrongSum(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes)
  const at = changed.indexOf('IDAT')
  const sum = at + 4 + changed.readUInt32BE(at - 4)
  changed.writeUInt32BE((changed.readUInt32BE(sum) ^ 1) >>> 0, sum)
  return changed
}
