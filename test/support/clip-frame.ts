import { execFileSync } from 'node:child_process'
import type { FrameFormat } from '../../src/vision/frame.js'
import { type SizePx, letterboxOf, scaledSizePx } from '../../src/vision/letterbox.js'

/**
 * One picture of a clip as the decoder delivers it: scaled, padded with 114, RGB.
 *
 * @param index - number of the picture, from 0.
 */
export function clipFrame(path: string, index: number, source: SizePx, format: FrameFormat): ArrayBuffer {
  const { widthPx, heightPx } = format.input
  const { padXPx, padYPx } = letterboxOf(source, format.input, format.align)
  const scaled = scaledSizePx(source, format.input)
  const filter = [
    `select=eq(n\\,${index})`,
    `scale=${scaled.widthPx}:${scaled.heightPx}`,
    `pad=${widthPx}:${heightPx}:${padXPx}:${padYPx}:color=0x727272`,
  ].join(',')
  const raw = ['-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
  const bytes = execFileSync('ffmpeg', ['-v', 'error', '-i', path, '-vf', filter, ...raw], {
    maxBuffer: widthPx * heightPx * 4,
  })
  const frame = new Uint8Array(widthPx * heightPx * 3)
  frame.set(bytes)
  return frame.buffer
}
