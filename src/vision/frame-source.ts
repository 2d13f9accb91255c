import type { CameraStatus } from './camera-state.js'
import type { Frame } from './frame.js'

/** Things that went wrong without ending a source; each is counted per camera. */
export const sourceWarnings = [
  'hwaccel_fallback',
  'decode_error',
  'pts_discontinuity',
  'decoder_killed',
  'log_suppressed',
  'frozen_picture',
  'few_key_frames',
  'poll_failed',
  'pixel_aspect',
  'decoder_behind',
] as const
export type SourceWarning = (typeof sourceWarnings)[number]

/** What a stream says of its video: ffmpeg's name of the codec, and pictures a second where it says so. */
export type VideoStreamFacts = Readonly<{ codec: string; fps?: number }>

/** What a source tells its owner. Called on the engine's loop; must not throw. */
export interface SourceListener {
  /** A frame arrived; its buffer now belongs to the listener. */
  frame(frame: Frame): void
  status(status: CameraStatus): void
  /** The camera has said that it sends; its first picture may be a while off. Not every source tells it. */
  opened?(): void
  /** @param detail - redacted, for the log. */
  warning(kind: SourceWarning, detail: string): void
  /** What its video is. Not every source tells it. */
  stream?(facts: VideoStreamFacts): void
}

/**
 * The newest picture of a camera as it was sent, from which one of its own resolution can be made: a still, the packets of a key frame, or a
 * moment of a video file. Nothing has been decoded for it.
 */
export type SentPictureSource = Readonly<{ /** Wall time. */ capturedAtMs: number }> &
  (
    | Readonly<{ kind: 'still'; bytes: Uint8Array }>
    | Readonly<{ kind: 'packets'; sdp: string; packets: readonly Buffer[] }>
    | Readonly<{ kind: 'file'; path: string; atS: number }>
  )

/** Pictures of one camera: a supervised decoder, a folder, or pushes. */
export interface FrameSource {
  readonly status: CameraStatus
  /** CPU seconds the decoder has used, children included; 0 where there is none. */
  decoderCpuSeconds(): number
  /** The card of its engine has room for a decoder by now, which was refused one. Absent: it has no decoder. */
  cardHasRoom?(): void
  /** Its newest picture as it was sent; undefined where it is not at hand. Absent: it never is. */
  sentPicture?(): SentPictureSource | undefined
  start(): void
  /** Idempotent, never rejects. After it no listener is called and no child is left. */
  stop(): Promise<void>
}
