import type { CameraConfig } from '../config/camera.js'
import { redactText } from '../config/redact.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { SentPictureSource } from '../vision/frame-source.js'
import { delay, unlessAborted } from '../lifecycle/delay.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { unreachable } from './camera-connection.js'
import type { LoginMemory } from './camera-login.js'
import { initialDecodeState, toldDecoding } from './decode-policy.js'
import { failureBy, type Failure } from './failure-reason.js'
import { HttpClient } from './http-client.js'
import { contentReasons, type HttpContent } from './http-content.js'
import { secretsOf, withoutSecrets } from './secrets.js'
import type { Session, SessionEnd, SessionListener } from './session.js'
import { usualSilenceMs } from './picture-rhythm.js'
import { readSnapshot, type Snapshot } from './snapshot-reader.js'
import type { SourceDeps } from './source-deps.js'
import { ImageInvalidError, ImageTooLargeError } from './source-errors.js'
import { askedFormats, decodeStill } from './still.js'

export type SnapshotOptions = Readonly<{
  camera: CameraConfig
  /** With its login. */
  url: string
  /** Told what the URL leads to, where that is no snapshot. */
  memory: { content: HttpContent; readonly logins: LoginMemory }
  deps: Pick<SourceDeps, 'format' | 'pool' | 'addresses' | 'samplingPhase'>
}>

/**
 * A URL that gives one picture for each request, asked `sampleFps` times a second. One request is under way at a time: a camera that is
 * slower is asked again as soon as it has answered. Every good answer is a frame, of the moment that it was complete, whether the picture
 * has changed or not.
 *
 * A single answer without a picture is a warning; for as long as `stallTimeoutMs` without one, and the session ends with its reason. It
 * ends at once where the first answer is none, or where the camera refuses.
 */
export class SnapshotSession implements Session {
  readonly ended: Promise<SessionEnd>
  readonly #cut = new AbortController()
  readonly #secrets: readonly string[]
  readonly #periodMs: number
  /** Of the last good answer. */
  #goodMs: number | undefined
  #unbelieved = false
  #last: SentPictureSource | undefined

  constructor(
    readonly options: SnapshotOptions,
    readonly listener: SessionListener,
  ) {
    this.#periodMs = 1_000 / options.camera.sampleFps
    this.#secrets = secretsOf(options.url)
    this.ended = this.#run()
  }

  stop(): void {
    this.#cut.abort()
  }

  sentPicture(): SentPictureSource | undefined {
    return this.#last
  }

  /** The pictures are decoded in this very process. */
  cpuSeconds(): number {
    return 0
  }

  async #run(): Promise<SessionEnd> {
    const { signal } = this.#cut
    try {
      const { url, deps, memory } = this.options
      const found = await unlessAborted(deps.addresses.resolve(new URL(url).hostname), signal)
      if (found.kind !== 'open') return { kind: 'failed', ...unreachable(found) }
      const client = new HttpClient({
        ...{ url, policy: deps.addresses, nearness: found.nearness, logins: memory.logins, signal },
      })
      return await this.#poll(client).finally(() => client.close())
    } catch (error) {
      const limit = systemLimit(error)
      if (limit !== undefined) return { kind: 'failed', ...failureBy(limit) }
      return { kind: 'failed', reason: this.#clean((error as Error).message), retry: 'normal' }
    }
  }

  /** @throws what is no fault of a picture. */
  async #poll(client: HttpClient): Promise<SessionEnd> {
    let nextMs = nowMs()
    for (;;) {
      const end = await this.#once(client)
      if (end !== undefined) return end
      nextMs = this.#after(nextMs)
      await delay(Math.max(0, nextMs - nowMs()), this.#cut.signal)
    }
  }

  /** When to ask again: after the first picture at a moment of its own, so that cameras do not all answer at once. */
  #after(lastMs: number): number {
    const { samplingPhase } = this.options.deps
    const nextMs = Math.max(nowMs(), lastMs + this.#periodMs)
    if (this.#isAligned || samplingPhase === undefined) return nextMs
    this.#isAligned = true
    const late = (wallMs() + (nextMs - nowMs()) - samplingPhase * this.#periodMs) % this.#periodMs
    return nextMs + this.#periodMs - late
  }
  #isAligned = false

  /** @returns how the session ends; undefined where it goes on. */
  async #once(client: HttpClient): Promise<SessionEnd | undefined> {
    const seen = await readSnapshot(client)
    if (this.#cut.signal.aborted) return { kind: 'failed', reason: 'stopped', retry: 'normal' }
    if ('content' in seen) {
      this.options.memory.content = seen.content
      return { kind: 'again', reason: contentReasons[seen.content] }
    }
    const failure = 'reason' in seen ? seen : await this.#show(seen)
    return failure === undefined ? undefined : this.#failed(failure)
  }

  /** @returns what is wrong with the picture. */
  async #show({ bytes, isCut }: Snapshot): Promise<Failure | undefined> {
    const arrived = { arrivedMs: nowMs(), wallMs: wallMs() }
    if (this.#goodMs === undefined) this.listener.opened?.()
    const { camera, deps } = this.options
    try {
      const rules = { damaged: 'shown', known: askedFormats } as const
      const { rgbHwc, sent, unbelieved, damage } = await decodeStill(bytes, camera, deps, rules)
      if (damage !== undefined) this.listener.warning('decode_error', damage)
      if (unbelieved !== undefined && !this.#unbelieved) this.listener.warning('pixel_aspect', unbelieved)
      this.#unbelieved = unbelieved !== undefined
      if (this.#goodMs === undefined) this.#tell()
      this.#goodMs = arrived.arrivedMs
      this.#last = { kind: 'still', bytes, capturedAtMs: arrived.wallMs }
      this.listener.picture(rgbHwc, { ptsMs: null, sent, suspect: isCut || damage !== undefined, arrived })
      return undefined
    } catch (error) {
      if (!(error instanceof ImageInvalidError) && !(error instanceof ImageTooLargeError)) throw error
      return { reason: error.message, retry: 'normal' }
    }
  }

  async #failed(failure: Failure): Promise<SessionEnd | undefined> {
    const told = { ...failure, reason: this.#clean(failure.reason) }
    const silentMs = this.#goodMs === undefined ? Number.POSITIVE_INFINITY : nowMs() - this.#goodMs
    const waitMs = failure.retryAfterMs ?? 0
    if (failure.retry !== 'normal' || failure.systemHint !== undefined) return { kind: 'failed', ...told }
    if (silentMs + waitMs >= (this.options.camera.stallTimeoutMs ?? usualSilenceMs))
      return { kind: 'failed', ...told }
    this.listener.warning('poll_failed', told.reason)
    await delay(waitMs, this.#cut.signal)
    return undefined
  }

  #tell(): void {
    const { camera } = this.options
    const byReason = camera.hwaccel === 'none' ? '' : 'single pictures are decoded by the processor'
    const stream = { codec: 'mjpeg', by: 'software', byReason, restartable: true } as const
    const told = toldDecoding(initialDecodeState(camera), camera, stream)
    const reason = `snapshot, polled at ${camera.sampleFps} fps`
    this.listener.decoding?.({ ...told, mode: 'full', reason, tooFew: false, polledFps: camera.sampleFps })
  }

  #clean(text: string): string {
    return withoutSecrets(redactText(text), this.#secrets)
  }
}
