import type { DetectionsMessage } from '../messages/detections-message.js'
import type { PictureHeader } from '../messages/stream-protocol.js'
import type { FrameCounts } from '../vision/accounting.js'
import type { Base64 } from '../lifecycle/base64.js'

/** A result as it leaves the engine: all of the public message but the time of publishing. */
export type EngineResult = Readonly<{
  message: Omit<DetectionsMessage, 'timingsMs'> & {
    timingsMs: Omit<DetectionsMessage['timingsMs'], 'captureToPublish'>
  }
  /** Monotonic, comparable between processes. */
  arrivedMs: number
  /** Between the frames received since the result before. */
  decodeGapsMs: readonly number[]
  /** 0 where the result of an earlier frame was used again. */
  batchSize: number
  counts: FrameCounts
  picture?: Readonly<{ header: PictureHeader; jpeg: Base64 }>
}>

/** What an engine tells of each of its cameras, once a second. */
export type CameraBeat = Readonly<{
  cameraId: string
  counts: FrameCounts
  decoderCpuSeconds: number
  frozen: boolean
}>
