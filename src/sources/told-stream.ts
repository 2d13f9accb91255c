import { isDeepStrictEqual } from 'node:util'
import type { CameraConfig } from '../config/camera.js'
import { toldDecoding, type StreamFacts, type ToldDecoding } from './decode-policy.js'
import type { DecodedLocation } from './decoder-input.js'
import type { DecoderMemory } from './decoder-memory.js'
import type { SessionListener } from './session.js'
import type { SourceDeps } from './source-deps.js'
import { VideoTracks, type Video } from './video-tracks.js'

export type ToldStreamOptions = Readonly<{
  camera: CameraConfig
  input: DecodedLocation
  memory: DecoderMemory
  deps: Pick<SourceDeps, 'log'>
}>

/** What is known of a stream beside its pictures, and told when it changes: which of its videos is decoded, how and where. */
export class ToldStream {
  readonly #tracks: VideoTracks
  #codec: string | undefined
  #told: ToldDecoding | undefined

  constructor(
    readonly options: ToldStreamOptions,
    readonly listener: Pick<SessionListener, 'decoding' | 'stream'>,
  ) {
    this.#tracks = new VideoTracks(options.camera.videoTrack)
  }

  get facts(): StreamFacts {
    const { way, reason } = this.options.memory.ways.now
    return {
      codec: this.#codec,
      by: way.by,
      byReason: reason,
      track: this.#tracks.shown,
      restartable: this.restartable,
    }
  }

  get restartable(): boolean {
    return this.options.camera.loop || this.options.input.kind === 'rtsp'
  }

  /** Why the video that is wanted is not there; undefined where it is, or nothing was told. */
  get lacking(): string | undefined {
    return this.#tracks.lacking
  }

  /** Those of the input come first, by programs where there are several. */
  video(video: Video): void {
    this.#tracks.add(video)
    if (this.#codec === this.#tracks.codec) return
    this.#codec = this.#tracks.codec
    const { fps } = this.#tracks
    if (this.#codec !== undefined)
      this.listener.stream?.({ codec: this.#codec, ...(fps !== undefined && { fps }) })
    this.tell()
  }

  /** All videos of the input were told. */
  chosen(): void {
    this.#tracks.complete()
    const { shown, others } = this.#tracks
    if (shown === undefined) return
    this.tell()
    this.options.deps.log.info({ shown, others }, 'one of several videos is shown, by videoTrack')
  }

  /** Nothing where nothing has changed. */
  tell(): void {
    const { memory, camera } = this.options
    const told = toldDecoding(memory.decode, camera, this.facts, this.#told)
    if (isDeepStrictEqual(this.#told, told)) return
    this.#told = told
    this.listener.decoding?.(told)
  }
}
