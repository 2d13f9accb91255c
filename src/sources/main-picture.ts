import type { CameraConfig } from '../config/camera.js'
import { openedUrl } from '../config/camera-url-settings.js'
import { redactText } from '../config/redact.js'
import { GantryError } from '../errors.js'
import { nowMs } from '../lifecycle/clock.js'
import { unlessAborted } from '../lifecycle/delay.js'
import { unreachable } from './camera-connection.js'
import type { LoginMemory } from './camera-login.js'
import { validateCameraUrl } from './camera-url.js'
import { openInput, type OpenedInput } from './decoder-input.js'
import type { Failure } from './failure-reason.js'
import { HttpClient } from './http-client.js'
import { contentReasons, expectedContent, type HttpContent } from './http-content.js'
import { refusedLoginMs } from './refused-login.js'
import { secretsOf, withoutSecrets } from './secrets.js'
import { readSnapshot } from './snapshot-reader.js'
import type { SourceDeps } from './source-deps.js'
import { askedFormats, stillAsJpeg } from './still.js'
import { takeWholePicture, wholeQuality, type WholePicture } from './whole-picture.js'

/** Who asks again so soon is given the same picture, or the same reason. */
const keptMs = 2_000
/** The same where asking again so soon is of no use. */
const slowMs = 30_000

/** No picture of the main stream could be had. Its message holds no credentials. */
export class MainPictureError extends GantryError {
  readonly code = 'GANTRY_SOURCE_FAILED'
  readonly hint = 'The other stream is analysed all the same; see docs/runbooks/camera-not-live.md.'
  override readonly retryable = true
  constructor(
    cameraId: string,
    reason: string,
    readonly retry: Failure['retry'],
  ) {
    super(`camera "${cameraId}" gives no picture of its main stream: ${reason}`)
    this.name = 'MainPictureError'
  }
}

export type MainStreamOptions = Readonly<{
  camera: CameraConfig
  deps: Pick<SourceDeps, 'mediaRoot' | 'addresses' | 'connectGate'>
  /** Longest that a picture may take, its turn to connect included. */
  withinMs: number
}>

/**
 * The main stream of a camera whose sub-stream is analysed. It is opened for one picture, when one is asked for, in the way of every other
 * stream: at checked addresses, through a gate. Never twice at once.
 */
export class MainStream {
  readonly #closed = new AbortController()
  readonly #secrets: readonly string[]
  #taking: Promise<WholePicture> | undefined
  #last: Readonly<{ untilMs: number; outcome: WholePicture | MainPictureError }> | undefined
  /** What an HTTP camera is; by the end of its URL while nothing is known. */
  #content: HttpContent
  readonly #logins: LoginMemory = {}
  /** Logins refused in a row. */
  #refusals = 0

  constructor(readonly options: MainStreamOptions) {
    const url = openedUrl(options.camera, options.camera.url)
    this.#secrets = secretsOf(url)
    this.#content = /^https?:/i.test(url) ? expectedContent(url) : 'media'
  }

  /**
   * The next key frame of the stream, or the picture taken a moment before.
   *
   * @throws MainPictureError `GANTRY_SOURCE_FAILED`, retryable
   */
  take(): Promise<WholePicture> {
    if (this.#last !== undefined && nowMs() < this.#last.untilMs) {
      const { outcome } = this.#last
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
    }
    this.#taking ??= this.#take().finally(() => (this.#taking = undefined))
    return this.#taking
  }

  /** Ends what is under way. Idempotent. */
  close(): void {
    this.#closed.abort(this.#failure({ reason: 'the camera was changed or removed', retry: 'normal' }))
  }

  async #take(): Promise<WholePicture> {
    const { connectGate } = this.options.deps
    const late = AbortSignal.timeout(this.options.withinMs)
    const signal = AbortSignal.any([this.#closed.signal, late])
    let leave: () => void = () => undefined
    try {
      await unlessAborted(new Promise<void>((enter) => (leave = connectGate.request(enter))), signal)
      const picture = await this.#opened(signal)
      this.#refusals = 0
      this.#last = { untilMs: nowMs() + keptMs, outcome: picture }
      return picture
    } catch (error) {
      const failure = this.#asFailure(error, late.aborted)
      this.#last = { untilMs: nowMs() + this.#restMs(failure.retry), outcome: failure }
      throw failure
    } finally {
      leave()
    }
  }

  /** An HTTP camera may turn out to be something else, and once more to be something else than what it seemed then. */
  async #opened(signal: AbortSignal, triesLeft = 2): Promise<WholePicture> {
    const takenFor = this.#content
    try {
      return await this.#open(signal)
    } catch (error) {
      if (this.#content === takenFor || triesLeft === 0 || signal.aborted) throw error
      return this.#opened(signal, triesLeft - 1)
    }
  }

  async #open(signal: AbortSignal): Promise<WholePicture> {
    const { camera, deps } = this.options
    const location = await validateCameraUrl(openedUrl(camera, camera.url), deps)
    if (location.kind === 'push' || location.kind === 'folder')
      throw this.#failure({ reason: 'its URL names no stream', retry: 'never' })
    const content = this.#content
    if (location.kind === 'http' && (content === 'snapshot' || content === 'pictures'))
      return this.#ask(location.url, signal)
    const opened = await openInput({
      location,
      // None is left out by a sampler.
      camera: { transport: camera.transport, sampleFps: Infinity },
      addresses: deps.addresses,
      logins: this.#logins,
      content: content === 'snapshot' ? 'media' : content,
      // It is decoded at once.
      keepsKeyFrames: false,
      mistaken: (is) => (this.#content = is),
      signal,
    })
    if ('reason' in opened) throw this.#failure(opened)
    try {
      return await this.#read(opened, signal)
    } finally {
      await opened.gate?.close()
    }
  }

  /** A picture that comes by itself needs no decoder. */
  async #ask(url: string, signal: AbortSignal): Promise<WholePicture> {
    const { addresses } = this.options.deps
    const found = await unlessAborted(addresses.resolve(new URL(url).hostname), signal)
    if (found.kind !== 'open') throw this.#failure(unreachable(found))
    const client = new HttpClient({
      ...{ url, policy: addresses, nearness: found.nearness, logins: this.#logins, signal },
    })
    try {
      const seen = await readSnapshot(client, { ofStream: true })
      signal.throwIfAborted()
      if ('reason' in seen) throw this.#failure(seen)
      if ('content' in seen) {
        this.#content = seen.content
        throw this.#failure({ reason: contentReasons[seen.content], retry: 'normal' })
      }
      return await stillAsJpeg(seen.bytes, this.options.camera, wholeQuality, askedFormats)
    } finally {
      client.close()
    }
  }

  async #read(opened: OpenedInput, signal: AbortSignal): Promise<WholePicture> {
    const picture = await takeWholePicture(opened, this.options.camera, signal)
    if ('reason' in picture) throw this.#failure(picture)
    return picture
  }

  #restMs(retry: Failure['retry']): number {
    if (retry === 'login') return refusedLoginMs(this.#refusals++)
    return retry === 'normal' ? keptMs : slowMs
  }

  #asFailure(error: unknown, late: boolean): MainPictureError {
    if (error instanceof MainPictureError) return error
    const seconds = this.options.withinMs / 1_000
    const reason = late ? `none came within ${seconds} s` : (error as Error).message
    return this.#failure({ reason, retry: 'normal' })
  }

  #failure({ reason, retry }: Failure): MainPictureError {
    const clean = withoutSecrets(redactText(reason), this.#secrets)
    return new MainPictureError(this.options.camera.id, clean, retry)
  }
}
