import { resolve } from 'node:path'
import { cameraSchema, type CameraConfig } from '../../config/camera.js'
import { silentLog } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { createSource } from '../../sources/create-source.js'
import { FramePool } from '../../vision/frame-pool.js'
import type { FrameSource, SourceListener } from '../../vision/frame-source.js'
import { frameBytes, type FrameFormat } from '../../vision/frame.js'
import type { SizePx } from '../../vision/letterbox.js'
import { PerfSettingError } from './perf-errors.js'

/** Cameras that connect at once. */
const mostConnecting = 4
/** Longest that the first frame of a camera is waited for. */
const firstFrameMs = 20_000

/** Cameras of a load, decoded as an engine does it. */
export class FrameCameras {
  readonly #gate = new ConnectGate(mostConnecting)
  readonly pool: FramePool
  readonly format: FrameFormat

  constructor(size: SizePx) {
    this.format = { input: size, align: 'center' }
    this.pool = new FramePool(frameBytes(this.format), 16)
  }

  /** A camera that is not started. */
  async open(camera: CameraConfig, listener: SourceListener): Promise<FrameSource> {
    let seq = 0
    return createSource(camera, {
      format: this.format,
      pool: this.pool,
      listener,
      nextSeq: () => ++seq,
      log: silentLog(),
      mediaRoot: '/',
      addresses: new AddressPolicy(),
      connectGate: this.#gate,
    })
  }
}

/** Settings of a camera of a load. @param url - of a network camera, or a path. */
export function cameraOf(id: string, url: string, sampleFps: number): CameraConfig {
  const whole = /^[a-z]+:\/\//i.test(url) ? url : resolve(url)
  return cameraSchema.parse({ id, url: whole, sampleFps })
}

/**
 * The first frames of a clip, or a folder of pictures, letterboxed to a size: uint8 RGB `[heightPx, widthPx, 3]`, from its beginning again
 * where it has fewer.
 *
 * @throws PerfSettingError where it cannot be decoded; the reason of the signal.
 */
export async function framesOf(
  path: string,
  size: SizePx,
  count: number,
  signal: AbortSignal,
): Promise<readonly Uint8Array[]> {
  const cameras = new FrameCameras(size)
  const frames: Uint8Array[] = []
  let source: FrameSource | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((done, fail) => {
      const wrong = (reason: string) =>
        fail(
          new PerfSettingError(
            `${path} gives no pictures: ${reason}`,
            'Name a video, a picture, or a folder of them.',
          ),
        )
      timer = setTimeout(() => wrong(`none within ${firstFrameMs / 1e3} s`), firstFrameMs)
      signal.addEventListener('abort', () => fail(signal.reason as Error), { once: true })
      const listener: SourceListener = {
        frame({ rgbHwc }) {
          clearTimeout(timer)
          if (frames.length < count) frames.push(new Uint8Array(rgbHwc))
          if (frames.length === count) done()
        },
        status({ state, reason }) {
          if (state === 'failed' || state === 'backoff') wrong(reason)
        },
        warning: () => undefined,
      }
      cameras.open(cameraOf('clip', path, 30), listener).then((opened) => {
        source = opened
        if (opened.status.state === 'failed') return wrong(opened.status.reason)
        return opened.start()
      }, fail)
    })
    return frames
  } finally {
    clearTimeout(timer)
    await source?.stop()
  }
}
