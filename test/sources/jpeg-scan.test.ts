import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { atOnce } from '../../src/lifecycle/in-turns.js'
import { scanJpeg } from '../../src/sources/jpeg-scan.js'
import { wholeStills } from '../support/damaged-stills.js'
import { tempDir } from '../support/temp-dir.js'
import { ffmpegRun } from '../support/video-clips.js'

const scan = (jpeg: Uint8Array) => atOnce(scanJpeg(jpeg))

/** A picture of ffmpeg's, which encodes as cameras do. */
async function encoded(...options: readonly string[]): Promise<Buffer> {
  const file = `${tempDir()}/one.mjpeg`
  const source = ['-f', 'lavfi', '-i', 'testsrc2=s=640x360', '-frames:v', '1', '-pix_fmt', 'yuvj420p']
  await ffmpegRun(...source, ...options, '-f', 'mjpeg', file)
  return readFile(file)
}

describe('scanJpeg', () => {
  it.each(wholeStills.filter(([name]) => name.includes('JPEG') && !name.includes('progressive')))(
    'finds nothing in %s',
    async (_, make) => {
      expect(scan(await make())).toMatchObject({ judged: true })
      expect(scan(await make())).not.toHaveProperty('damage')
    },
  )

  it.each([
    ['optimal codes', ['-q:v', '4']],
    ['the codes of the standard', ['-q:v', '4', '-huffman', 'default']],
    ['restart markers', ['-q:v', '4', '-slices', '4', '-threads', '4']],
  ])('finds most of what changes a hundredth of a picture with %s', async (_, options) => {
    const jpeg = await encoded(...options)
    expect(scan(jpeg)).toEqual({ judged: true, ends: true })
    const from = jpeg.indexOf(Buffer.from([0xff, 0xda])) + 20
    const places = Array.from(
      { length: 60 },
      (_, n) => from + Math.floor(((jpeg.length - from - 10) * (n + 1)) / 61),
    )
    const found = places.filter((at) => scan(Buffer.from(jpeg).fill(0x55, at, at + 6)).damage !== undefined)
    // The others are a few blocks that no other part of the picture depends on.
    expect(found.length / places.length).toBeGreaterThan(0.6)
  })

  it('does not judge what is coded progressively, and sees whether it ends', async () => {
    const progressive = wholeStills.find(([name]) => name === 'a progressive JPEG')?.[1]
    const jpeg = (await progressive?.()) ?? Buffer.alloc(0)
    expect(scan(jpeg)).toEqual({ judged: false, ends: true })
    expect(scan(jpeg.subarray(0, -2))).toEqual({ judged: false, ends: false })
  })

  it('ends with every input', () => {
    const bytes = Buffer.alloc(4_096)
    let state = 1
    for (let round = 0; round < 200; round += 1) {
      for (let at = 0; at < bytes.length; at += 1) {
        state = (state * 48_271) % 0x7fff_ffff
        // Markers, most of all those that begin something.
        bytes[at] = at % 5 === 0 ? 0xff : at % 5 === 1 ? 0xc0 + (state % 32) : state % (round + 2)
      }
      expect(typeof scan(bytes).judged).toBe('boolean')
    }
    expect(scan(Buffer.from([0xff, 0xd8]))).toMatchObject({ damage: 'its data ends before the picture does' })
  })
})
