import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import { parseDetectionsJson } from '../../messages/detections-json.js'
import { cursorOfTime, parseCursor } from './cursor.js'
import { Rendering } from './rendering.js'
import { Replay, type ReplaySettings } from './replay.js'
import type { ResumeRing } from './resume-ring.js'
import type { StreamClient } from './stream-client.js'

/** A result as somebody published it. */
export type PastResult = Readonly<{
  cameraId: string
  /** JSON of the message, UTF-8. */
  json: Buffer
  /** Wall time up to which all results have been read. */
  completeMs: number
}>

/** What several published, kept where all of them put it. */
export type SharedPast = Readonly<{
  /**
   * Results of all cameras since a time, in the order of each camera, until those have come that were published before `isLive` resolved.
   *
   * @param offer - whoever reads is not faster than this.
   * @param isLive - from then on what is published comes to the reader by another way.
   * @returns false where some may be missing. Never rejects.
   */
  read(
    fromMs: number,
    offer: (result: PastResult) => Promise<void>,
    isLive: Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean>
}>

/** What a hub asks where others publish, too. */
export type SharedStream = Readonly<{
  /** Wall time up to which all that others published has come here. */
  completeMs: () => number
  /** Position from which on all results of these cameras have come here; infinite where they do not. */
  wholeFrom: (cameras: readonly string[]) => number
  past: SharedPast
}>

/** Longest that others are waited for, to be asked for what they see. */
const liveWithinMs = 10_000
const lookEveryMs = 50
/** Messages at the end of the past that may come again as the newest. */
const mostKnown = 20_000

/**
 * Sends a returning client what all published since a time, from where they keep it, then what is kept of the newest, and makes it live. A message
 * may come that it has: places are times, and clocks of several.
 */
export class SharedReplay {
  readonly #cancelled = new AbortController()
  /** Of the past, what each message says of itself. */
  readonly #known = new Set<string>()
  /** The end of it: what is kept, from where on. */
  #end: Replay | undefined
  #position = 0
  #sent = 0

  constructor(
    readonly client: StreamClient,
    readonly ring: ResumeRing,
    readonly shared: Pick<SharedStream, 'past' | 'wholeFrom'>,
    readonly settings: ReplaySettings,
    readonly done: (sent: number) => void,
  ) {}

  /** Never rejects. */
  async run(fromMs: number): Promise<void> {
    const { client, ring } = this
    // What comes from now on is kept, and for longer than the past takes to know it.
    const liveFrom = ring.newest + 1
    const { signal } = this.#cancelled
    const offer = (result: PastResult) => this.#offer(result)
    const isWhole = await this.shared.past.read(fromMs, offer, this.#isLive(signal), signal)
    if (signal.aborted || !client.isOpen) return
    if (!isWhole) client.tell({ type: 'gap', dropped: 0, reason: 'resume_expired' })
    const done = (sent: number) => this.done(this.#sent + sent)
    const has = (json: Buffer) => this.#known.has(keyOf(json))
    this.#end = new Replay(client, ring, undefined, this.settings, done, has)
    this.#end.run(isWhole ? Math.max(liveFrom, ring.oldest) : ring.oldest)
  }

  cancel(): void {
    this.#cancelled.abort()
    this.#end?.cancel()
  }

  /** Resolves once all of its cameras are asked of whoever has them, or could be. */
  async #isLive(signal: AbortSignal): Promise<void> {
    const cameras = this.client.subscription?.cameras ?? []
    const untilMs = nowMs() + liveWithinMs
    while (this.shared.wholeFrom(cameras) === Infinity && nowMs() < untilMs)
      if (!(await delay(lookEveryMs, signal))) return
  }

  async #offer({ cameraId, json, completeMs }: PastResult): Promise<void> {
    const { client } = this
    if (!client.wantsCamera(cameraId)) return
    this.#know(keyOf(json))
    const cursor = cursorOfTime(completeMs, this.#position)
    this.#position = parseCursor(cursor).position
    const message = new Rendering(cursor, json).for(client.filter)
    this.#sent += 1
    if (!client.isBehind) return client.send(message)
    await new Promise<void>((resolve) => client.send(message, resolve))
  }

  #know(key: string): void {
    this.#known.add(key)
    if (this.#known.size <= mostKnown) return
    const [oldest] = this.#known
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}

/** The same for each copy of a result. */
function keyOf(json: Buffer): string {
  const { cameraId, seq, owner, capturedAt } = parseDetectionsJson(json.toString())
  return `${cameraId}/${owner?.generation ?? ''}/${seq}/${capturedAt}`
}
