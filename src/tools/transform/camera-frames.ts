import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CameraConfig } from '../../config/camera.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import { createSource } from '../../sources/create-source.js'
import type { LookSetting } from '../../sources/first-picture.js'
import type { CameraStatus } from '../../vision/camera-state.js'
import { type Frame, frameBytes, type FrameFormat } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import { scaledSizePx } from '../../vision/letterbox.js'
import { ModelTransformError } from './transform-error.js'

/** A camera whose frames are taken, and what cameras are opened with. */
export type FilmedCamera = Readonly<{ camera: CameraConfig; setting: LookSetting }>

const format: FrameFormat = { input: { widthPx: 1_280, heightPx: 720 }, align: 'center' }

/** Longest wait for the next frame. */
const patienceMs = 20_000

/**
 * Opens a camera as an engine does and keeps the frames that it would analyse, as pictures.
 *
 * @returns their paths, `count` of them.
 * @throws ModelTransformError if the camera fails, or gives no frame for 20 s; AbortError after the signal
 */
export async function keepCameraFrames(
  { camera, setting }: FilmedCamera,
  count: number,
  folder: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly string[]> {
  mkdirSync(folder, { recursive: true })
  const pool = new FramePool(frameBytes(format), 4)
  const kept: Promise<string>[] = []
  let tell: (status: CameraStatus | undefined) => void = () => undefined
  let seq = 0
  let next = nextThing()
  function nextThing() {
    return new Promise<CameraStatus | undefined>((resolve) => (tell = resolve))
  }
  const source = await createSource(camera, {
    format,
    pool,
    nextSeq: () => ++seq,
    ...setting,
    listener: {
      frame: (frame) => {
        if (kept.length < count) {
          const one = keep(frame, join(folder, `${String(kept.length).padStart(6, '0')}.png`), pool)
          // Whoever awaits all of them is told.
          one.catch(() => undefined)
          kept.push(one)
        } else pool.give(frame.rgbHwc)
        tell(undefined)
      },
      status: (status) => {
        if (status.state !== 'connecting' && status.state !== 'live') tell(status)
      },
      warning: () => undefined,
    },
  })
  source.start()
  try {
    while (kept.length < count) {
      const thing = await unlessAborted(
        atMost(
          patienceMs,
          next.then((status) => ({ status })),
        ),
        signal,
      )
      next = nextThing()
      if (thing === undefined || thing.status !== undefined) throw failed(camera, kept.length, thing?.status)
    }
    return await Promise.all(kept)
  } finally {
    await source.stop()
    await Promise.allSettled(kept)
  }
}

function failed({ id }: CameraConfig, frames: number, status: CameraStatus | undefined): ModelTransformError {
  const why =
    status === undefined
      ? `gives no frame for ${patienceMs / 1000} s`
      : `is ${status.state}: ${status.reason ?? ''}`
  return new ModelTransformError(
    `camera "${id}" ${why}, after ${frames} frames`,
    'Look at it with `gantry check --probe`, or take a clip or a folder of its pictures.',
  )
}

/** What the camera showed, without the padding around it. */
async function keep({ rgbHwc, letterbox, regionPx }: Frame, path: string, pool: FramePool): Promise<string> {
  const { widthPx, heightPx } = scaledSizePx(regionPx, format.input)
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  await sharp(new Uint8Array(rgbHwc), {
    raw: { width: format.input.widthPx, height: format.input.heightPx, channels: 3 },
  })
    .extract({ left: letterbox.padXPx, top: letterbox.padYPx, width: widthPx, height: heightPx })
    .png({ compressionLevel: 1 })
    .toFile(path)
  pool.give(rgbHwc)
  return path
}
