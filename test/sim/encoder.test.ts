import { randomFillSync } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Encoder } from '../../sim/render/encoder.js'

it('makes the same bytes of the same pictures, also where they meet the rate limit', async () => {
  const size = { widthPx: 640, heightPx: 384, fps: 25, crf: 24, maxKbps: 1200 }
  const pictures = Array.from({ length: 50 }, () =>
    randomFillSync(Buffer.alloc(size.widthPx * size.heightPx * 4)),
  )
  const folder = await mkdtemp(join(tmpdir(), 'gantry-encoder-'))
  try {
    const [first, second] = await Promise.all(
      ['first.mp4', 'second.mp4'].map(async (name) => {
        const path = join(folder, name)
        const encoder = Encoder.open({ ...size, path })
        for (const rgba of pictures) await encoder.write(rgba)
        await encoder.finish()
        return await readFile(path)
      }),
    )
    expect(first!.length).toBeGreaterThan(10_000)
    expect(first!.equals(second!)).toBe(true)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
