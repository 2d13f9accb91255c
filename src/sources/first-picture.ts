import type { CameraConfig } from '../config/camera.js'
import { atMost } from '../lifecycle/delay.js'
import type { CameraStatus } from '../vision/camera-state.js'
import { frameBytes, type Frame, type FrameFormat } from '../vision/frame.js'
import { FramePool } from '../vision/frame-pool.js'
import { createSource } from './create-source.js'
import type { SourceDeps } from './source-deps.js'

/** Small, because nobody looks at the picture. */
const format: FrameFormat = { input: { widthPx: 64, heightPx: 64 }, align: 'center' }

/** What all cameras that are looked at have in common. */
export type LookSetting = Pick<SourceDeps, 'mediaRoot' | 'addresses' | 'connectGate' | 'log'>

/** How long a picture is waited for, in ms. */
export type LookTimes = Readonly<{
  withinMs: number
  /** The same where the camera has said by then that it sends; `withinMs` where it is absent. */
  openMs?: number
  /** That has come to be so: `withinMs` have passed. */
  waits?(): void
}>

/**
 * Opens a camera exactly as an engine would, until its first picture or its first failure, and closes it again.
 *
 * @param seen - called with what ended the look and where the camera stands then, before it is closed.
 * @returns the same; `undefined` when the time is over. Never rejects.
 */
export async function firstPicture(
  camera: CameraConfig,
  setting: LookSetting,
  { withinMs, openMs = withinMs, waits }: LookTimes,
  seen: (what: Frame | CameraStatus, status: CameraStatus) => void = () => undefined,
): Promise<Frame | CameraStatus | undefined> {
  let tell: (what: Frame | CameraStatus) => void = () => undefined
  const outcome = new Promise<Frame | CameraStatus>((resolve) => (tell = resolve))
  let isOpen = false
  const source = await createSource(camera, {
    format,
    pool: new FramePool(frameBytes(format), 2),
    nextSeq: () => 1,
    ...setting,
    listener: {
      frame: tell,
      status: (status) => {
        if (status.state !== 'connecting' && status.state !== 'live') tell(status)
      },
      opened: () => (isOpen = true),
      warning: () => undefined,
    },
  })
  source.start()
  let first = await atMost(withinMs, outcome)
  if (first === undefined && isOpen && openMs > withinMs) {
    waits?.()
    first = await atMost(openMs - withinMs, outcome)
  }
  if (first !== undefined) seen(first, source.status)
  await source.stop()
  return first
}
