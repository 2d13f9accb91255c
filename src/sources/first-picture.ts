import type { CameraConfig } from '../config/camera.js'
import { atMost, delay, unlessAborted } from '../lifecycle/delay.js'
import type { CameraStatus } from '../vision/camera-state.js'
import { frameBytes, type Frame, type FrameFormat } from '../vision/frame.js'
import type { SourceListener } from '../vision/frame-source.js'
import { FramePool } from '../vision/frame-pool.js'
import { createSource } from './create-source.js'
import type { SourceDeps } from './source-deps.js'

/** Small, because nobody looks at the picture. */
const unseen: FrameFormat = { input: { widthPx: 64, heightPx: 64 }, align: 'center' }

/** What all cameras that are looked at have in common. */
export type LookSetting = Pick<SourceDeps, 'mediaRoot' | 'addresses' | 'connectGate' | 'log'>

/** What else is wanted of a look. */
export type LookWishes = Readonly<{
  /** Of the picture; small where nobody is to see it. */
  format?: FrameFormat
  /** Who asks goes: the camera is closed at once. */
  signal?: AbortSignal
  /** How long pictures are counted for behind the first one, in ms. */
  countedMs?: number
  /** Told with the time of each picture that is counted, the first one too; in ms of the stream. */
  counted?(ptsMs: number): void
}> &
  Pick<Partial<SourceListener>, 'warning' | 'stream'>

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
 * @returns the same; `undefined` when the time is over, or whoever asked is gone. Never rejects.
 */
export async function firstPicture(
  camera: CameraConfig,
  setting: LookSetting,
  { withinMs, openMs = withinMs, waits }: LookTimes,
  seen: (what: Frame | CameraStatus, status: CameraStatus) => void = () => undefined,
  { format = unseen, signal, countedMs = 0, ...wanted }: LookWishes = {},
): Promise<Frame | CameraStatus | undefined> {
  let tell: (what: Frame | CameraStatus) => void = () => undefined
  const outcome = new Promise<Frame | CameraStatus>((resolve) => (tell = resolve))
  let isOpen = false
  const pool = new FramePool(frameBytes(format), 2)
  let isFirst = true
  const source = await createSource(camera, {
    format,
    pool,
    nextSeq: () => 1,
    ...setting,
    listener: {
      frame: (frame) => {
        wanted.counted?.(frame.ptsMs)
        if (!isFirst) return pool.give(frame.rgbHwc)
        isFirst = false
        tell(frame)
      },
      status: (status) => {
        if (status.state !== 'connecting' && status.state !== 'live') tell(status)
      },
      opened: () => (isOpen = true),
      warning: (kind, detail) => wanted.warning?.(kind, detail),
      stream: (facts) => wanted.stream?.(facts),
    },
  })
  const unlessGone = (work: Promise<Frame | CameraStatus | undefined>) =>
    signal === undefined ? work : unlessAborted(work, signal).catch(() => undefined)
  source.start()
  let first = await unlessGone(atMost(withinMs, outcome))
  if (first === undefined && isOpen && openMs > withinMs && signal?.aborted !== true) {
    waits?.()
    first = await unlessGone(atMost(openMs - withinMs, outcome))
  }
  if (first !== undefined) seen(first, source.status)
  if (first !== undefined && !('state' in first) && countedMs > 0)
    await delay(countedMs, signal ?? new AbortController().signal)
  await source.stop()
  return first
}
