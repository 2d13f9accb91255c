import sharp from 'sharp'
import type { SizePx } from '../../src/vision/letterbox.js'
import { addModel, redDetector } from './onnx-models.js'
import { tempDir } from './temp-dir.js'

/**
 * A repository with the model `red`, which finds one box of class `red` in every picture, with the mean red of it as score. In a picture
 * with the sides of its input, 64 x 64, it is at {@link redBox}; in others by the letterbox.
 */
export function redRepository(config = 'max_batch_size: 4'): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config })
  return dir
}

/** Left, top, width and height in a picture of 64 x 64. */
export const redBox = [22, 12, 20, 8] as const

/** A picture of one colour. @param red - 0..255. */
export function redPicture(
  { widthPx, heightPx }: SizePx,
  red: number,
  format: 'png' | 'jpeg' | 'webp' = 'png',
  orientation = 1,
): Promise<Buffer> {
  const background = { r: red, g: 0, b: 0 }
  const picture = sharp({ create: { width: widthPx, height: heightPx, channels: 3, background } })
  return picture.withMetadata({ orientation }).toFormat(format, { quality: 100 }).toBuffer()
}
