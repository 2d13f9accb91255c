import { randomUUID } from 'node:crypto'
import type { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import { requestDurations } from '../../runtime/statistics.js'
import type { ServedStatistics } from '../client/kserve-client.js'
import type { GantryApi, SeenResult } from '../client/gantry-api.js'
import type { Load, RequestEnded } from './load.js'
import { PerfSettingError } from './perf-errors.js'
import type { CountersReader } from './server-split.js'

export type CameraLoadSettings = Readonly<{
  cameras: number
  /** Frames analysed per second and camera. */
  fps: number
  /** Where a camera is opened, by its number from 1. */
  urlOf(camera: number): string
}>

/** Longest that the first results of all cameras are waited for. */
const firstResultsMs = 30_000

/**
 * Cameras of a running service of Gantry, added by its API and removed at the end. What ends is a result, as the stream brings it; its
 * latency is that from capture to publishing, by the service's own clock.
 */
export class CameraLoad implements Load {
  readonly #ids: readonly string[]
  readonly #added: string[] = []
  #closeStream: () => void = () => undefined
  #stopped = false
  #starting: Promise<void> = Promise.resolve()
  #droppedBefore = 0
  readonly #sums = { count: 0, queue: 0, infer: 0, postprocess: 0 }

  constructor(
    readonly api: GantryApi,
    readonly settings: CameraLoadSettings,
    readonly signal: AbortSignal,
  ) {
    const run = randomUUID().slice(0, 8)
    this.#ids = Array.from({ length: settings.cameras }, (_, index) => `perf-${run}-${index + 1}`)
  }

  /** Parts of a result's time in the service, as if it were one model. */
  readonly counters: CountersReader = async () => {
    const { count, queue, infer, postprocess } = this.#sums
    const ms = {
      success: queue + infer + postprocess,
      queue,
      compute_infer: infer,
      compute_output: postprocess,
    }
    const parts = Object.fromEntries(
      requestDurations.map((part) => [
        part,
        { count, ns: ((ms as Record<string, number>)[part] ?? 0) * 1e6 },
      ]),
    ) as ServedStatistics['parts']
    // There is no response cache on this way.
    const own = { ...parts, cache_hit: { count: 0, ns: 0 }, cache_miss: { count: 0, ns: 0 } }
    return {
      model: [{ name: 'cameras', version: '1', inferenceCount: count, executionCount: count, parts: own }],
      steps: [],
    }
  }

  /** Resolves when every camera has given a result. */
  start(ended: RequestEnded): Promise<void> {
    this.#starting = this.#start(ended)
    return this.#starting
  }

  async #start(ended: RequestEnded): Promise<void> {
    const silent = new Set(this.#ids)
    const first = new AbortController()
    const lost = (error: GantryError): void => {
      if (this.#stopped) return
      const atMs = nowMs()
      ended(atMs, {
        sentMs: atMs,
        writtenMs: atMs,
        firstByteMs: atMs,
        receivedMs: atMs,
        error,
        answer: undefined,
      })
      first.abort()
    }
    this.#closeStream = await this.api.stream(
      this.#ids,
      (result) => {
        if (silent.delete(result.cameraId) && silent.size === 0) first.abort()
        this.#result(result, ended)
      },
      lost,
    )
    for (const [index, id] of this.#ids.entries()) {
      this.signal.throwIfAborted()
      // Before it is known: an answer may be lost.
      this.#added.push(id)
      await this.api.addCamera({
        id,
        url: this.settings.urlOf(index + 1),
        sampleFps: this.settings.fps,
        persist: false,
      })
    }
    const waitedLong = await delay(firstResultsMs, AbortSignal.any([first.signal, this.signal]))
    if (waitedLong && silent.size > 0) throw await this.#silent(silent)
  }

  async takeDropped(): Promise<number> {
    try {
      const own = (await this.api.cameras()).filter(({ id }) => this.#ids.includes(id))
      const dropped = own.reduce((sum, { stats: { frames } }) => {
        const shed = Object.values(frames.shed).reduce((all, count) => all + count, 0)
        return sum + frames.superseded + frames.lost + shed
      }, 0)
      const since = dropped - this.#droppedBefore
      this.#droppedBefore = dropped
      return Math.max(0, since)
    } catch {
      // A service that is gone is told by its stream.
      return 0
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    // No camera may come after the others have gone.
    await this.#starting.catch(() => undefined)
    this.#closeStream()
    await Promise.all(
      this.#added.splice(0).map((id) =>
        this.api.removeCamera(id).catch(() => {
          // The service has ended, and with it what is not kept; or somebody else removed it.
        }),
      ),
    )
  }

  #result({ timingsMs }: SeenResult, ended: RequestEnded): void {
    if (this.#stopped) return
    const receivedMs = nowMs()
    const fromMs = receivedMs - timingsMs.captureToPublish
    this.#sums.count += 1
    this.#sums.queue += timingsMs.queue
    this.#sums.infer += timingsMs.infer
    this.#sums.postprocess += timingsMs.postprocess
    const sent = { sentMs: fromMs, writtenMs: fromMs, firstByteMs: receivedMs, receivedMs }
    ended(fromMs, { ...sent, error: undefined, answer: undefined })
  }

  async #silent(silent: ReadonlySet<string>): Promise<GantryError> {
    const cameras = await this.api.cameras()
    const one = cameras.find(({ id }) => silent.has(id))
    const why =
      one === undefined
        ? 'it is gone'
        : `it is ${one.status.state}${one.status.reason === '' ? '' : `: ${one.status.reason}`}`
    return new PerfSettingError(
      `${silent.size} of ${this.#ids.length} cameras gave no result within ${firstResultsMs / 1e3} s; of ${one?.id ?? 'one'} ${why}`,
      'Look at the cameras of the service; name another clip or camera with --clip.',
    )
  }
}
