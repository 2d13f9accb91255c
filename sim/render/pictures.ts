import sharp from 'sharp'
import { RenderError } from '../errors.js'
import { type Scenario } from '../scenario/schema.js'
import { firstFrameOf } from '../truth/observer.js'
import { pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { faultsAt } from '../world/faults.js'
import { type RenderBrowser } from './browser.js'

export interface PictureOptions {
  readonly frames: readonly number[]
  readonly widthPx?: number
  readonly heightPx?: number
  /** More makes smoother light and a slower first frame. */
  readonly bakePasses?: number
}

/**
 * Draws frames of a scenario in order and hands each over as RGBA. The faults behind the sensor are made here: real
 * JPEG blocks, the repeated picture of a frozen stream, black.
 */
export async function drawPictures(
  browser: RenderBrowser,
  scenario: Scenario,
  { frames, widthPx = pictureWidthPx, heightPx = pictureHeightPx, bakePasses = 16 }: PictureOptions,
  take: (frame: number, rgba: Buffer) => Promise<void>,
): Promise<void> {
  const frozenAt = (frame: number): number | undefined => {
    const frozen = faultsAt(scenario, frame).find(({ kind }) => kind === 'frozen')
    return frozen === undefined ? undefined : Math.max(0, firstFrameOf(frozen.fromS) - 1)
  }
  // A frozen stretch needs the one picture it shows, whichever of its frames are asked for.
  const shown = frames.map((frame) => frozenAt(frame) ?? frame)
  const toDraw = shown.filter((frame, i) => frame !== shown[i - 1])
  let next = 0
  await browser.draw(
    { kind: 'picture', scenario, frames: toDraw, widthPx, heightPx, bakePasses },
    async (picture) => {
      while (next < frames.length && shown[next] === picture.frame) {
        const frame = frames[next++]!
        await take(frame, await behindSensor(scenario, frame, picture.rgba, widthPx, heightPx))
      }
    },
  )
  if (next < frames.length) throw new RenderError(`${next} of ${frames.length} frames were drawn`)
}

async function behindSensor(
  scenario: Scenario,
  frame: number,
  rgba: Buffer,
  widthPx: number,
  heightPx: number,
): Promise<Buffer> {
  let picture = rgba
  for (const { kind, strength } of faultsAt(scenario, frame)) {
    if (kind === 'black') picture = Buffer.alloc(rgba.length)
    if (kind === 'blocky')
      picture = await blocks(picture, widthPx, heightPx, Math.max(1, Math.round(14 * (1 - strength))))
  }
  return picture
}

async function blocks(rgba: Buffer, width: number, height: number, quality: number): Promise<Buffer> {
  const jpeg = await sharp(rgba, { raw: { width, height, channels: 4 } })
    .removeAlpha()
    .jpeg({ quality })
    .toBuffer()
  return sharp(jpeg).ensureAlpha().raw().toBuffer()
}
