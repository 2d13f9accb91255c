import type { CameraState } from '../vision/camera-state.js'
import type { BlindCause, PictureVerdict } from '../vision/coverage.js'
import { PictureLine } from './picture-line.js'
import { UsualGap } from './usual-gap.js'

/** A stretch of monotonic time; `cause` is null where the camera was watched. */
export type Stretch = Readonly<{ fromMs: number; toMs: number; cause: BlindCause | null }>

/** A picture that was looked at. */
export type LookedAt = Readonly<{
  /** Monotonic time at which its last byte left the decoder. */
  arrivedMs: number
  isSuspect: boolean
  /** Pictures received until then. */
  received: number
  /** Between the pictures received since the one before. */
  gapsMs: readonly number[]
}>

/** Pictures looked at that are no further apart than this leave nothing unseen between them: whoever walks by is seen in one of them. */
const leastHoldMs = 2_000
/** Of a camera that sends less often: so many of its usual gaps. One lost picture is no blindness. */
const holdGaps = 3
/** Results come after their pictures: so long after one it is not said yet that there was none. */
const resultLagMs = 2_000

/**
 * The time of one camera, watched or blind, without hole or overlap. Knows no clock: times are monotonic milliseconds, told by whoever calls.
 *
 * A camera is watched from one picture that was looked at to the next, while no more than {@link leastHoldMs} lies between; blindness begins
 * one picture's time after the last and ends with the first of at least two that come so soon after each other. Its cause is decided when it
 * is known. `connecting` never is a cause of its own: it is on the account of what was before it.
 */
export class CameraCoverage {
  /** Decided and not settled: the picture of some of it may still be in doubt. */
  #decided: Stretch[] = []
  #decidedMs: number
  #settledMs: number
  #cause: BlindCause
  /** The newest picture that was looked at while watched, or that may be the first of watching again. */
  #last: LookedAt | undefined
  /** First of pictures that may end the blindness. */
  #againMs: number | undefined
  #isWatched = false
  #state: CameraState = 'connecting'
  #liveMs = Infinity
  #received = 0
  readonly #gap: UsualGap
  readonly #pictures = new PictureLine()

  /**
   * @param startMs - its time begins here, blind.
   * @param cause - why, until pictures flow or something else is told.
   * @param periodMs - between the pictures that its settings ask for.
   */
  constructor(
    readonly startMs: number,
    cause: BlindCause,
    readonly periodMs: () => number,
  ) {
    this.#decidedMs = startMs
    this.#settledMs = startMs
    this.#cause = cause
    this.#gap = new UsualGap()
  }

  /** How far apart pictures may be that leave nothing unseen. */
  get holdMs(): number {
    return Math.max(leastHoldMs, holdGaps * this.#usualGapMs)
  }

  get #usualGapMs(): number {
    return Math.max(this.periodMs(), this.#gap.ms)
  }

  /** What the camera is said to be doing. */
  status(state: CameraState, atMs: number): void {
    const before = this.#state
    this.#state = state
    if (state === 'live') {
      if (before !== 'live') this.#liveMs = atMs
      return
    }
    this.#liveMs = Infinity
    const cause = causeOf(state, before, this.#cause)
    if (this.#isWatched || cause !== this.#cause) this.#turnsBlind(cause, atMs)
  }

  /** Its engine is gone, or lets it go. */
  engineGone(atMs: number): void {
    this.#state = 'connecting'
    this.#liveMs = Infinity
    // Counted from zero by the next one.
    this.#received = 0
    if (this.#isWatched || keptOverEngines[this.#cause] !== true) this.#turnsBlind('engine_down', atMs)
    this.#last = undefined
  }

  lookedAt(picture: LookedAt): void {
    const { arrivedMs } = picture
    for (const gapMs of picture.gapsMs) this.#gap.add(gapMs)
    this.#received = Math.max(this.#received, picture.received)
    const apartMs = arrivedMs - (this.#last?.arrivedMs ?? -Infinity)
    if (apartMs <= 0) return
    if (this.#isWatched) {
      if (apartMs <= this.holdMs) this.#decide(arrivedMs, causeOfPicture(this.#last))
      else this.#missed(arrivedMs)
    }
    if (!this.#isWatched) this.#mayEnd(arrivedMs, apartMs)
    this.#last = picture
  }

  /** What the engine tells once a second. */
  told({ received, picture }: Readonly<{ received: number; picture: PictureVerdict }>, atMs: number): void {
    this.#received = Math.max(this.#received, received)
    this.#pictures.told(picture, atMs)
  }

  /** Decides what is known by now. @returns what does not change any more, in order. */
  settle(nowMs: number): readonly Stretch[] {
    this.#look(nowMs)
    const settled: Stretch[] = []
    while (this.#decided[0]) {
      const [{ fromMs, toMs, cause }] = this.#decided as [Stretch]
      const untilMs = cause === null ? Math.min(toMs, Math.max(fromMs, this.#pictures.sureMs)) : toMs
      settled.push(...this.#withPictures({ fromMs, toMs: untilMs, cause }))
      this.#settledMs = untilMs
      if (untilMs < toMs) {
        this.#decided[0] = { fromMs: untilMs, toMs, cause }
        break
      }
      this.#decided.shift()
    }
    this.#pictures.forget(this.#settledMs)
    return settled
  }

  /** What {@link settle} has not given yet, up to now, as it stands: from here on it may be said otherwise. */
  open(nowMs: number): readonly Stretch[] {
    const cause = this.#isWatched ? causeOfPicture(this.#last) : this.#cause
    return [...this.#decided, { fromMs: this.#decidedMs, toMs: nowMs, cause }].flatMap((stretch) =>
      this.#withPictures(stretch),
    )
  }

  /** Of {@link open} what can be counted on: that of no picture in doubt, and of no picture that may have come already. */
  countable(nowMs: number): readonly Stretch[] {
    if (this.#isWatched && this.#pictures.doubtMs !== null) return []
    if (this.#isWatched) return this.open(Math.min(nowMs, this.#lastEndMs(nowMs)))
    return this.open(this.#state === 'live' ? this.#decidedMs : nowMs)
  }

  #withPictures({ fromMs, toMs, cause }: Stretch): readonly Stretch[] {
    if (fromMs >= toMs) return []
    if (cause !== null) return [{ fromMs, toMs, cause }]
    return this.#pictures
      .within(fromMs, toMs)
      .map(({ trouble, ...stretch }) => ({ ...stretch, cause: trouble }))
  }

  #decide(toMs: number, cause: BlindCause | null): void {
    if (toMs <= this.#decidedMs) return
    const before = this.#decided.at(-1)
    if (before?.cause === cause) this.#decided[this.#decided.length - 1] = { ...before, toMs }
    else this.#decided.push({ fromMs: this.#decidedMs, toMs, cause })
    this.#decidedMs = toMs
  }

  /** What was blind stays so until now; watching ends one picture's time after the last. */
  #turnsBlind(cause: BlindCause, atMs: number): void {
    if (this.#isWatched) this.#watchedUntil(atMs)
    else this.#decide(atMs, this.#cause)
    this.#cause = cause
    this.#isWatched = false
    this.#againMs = undefined
  }

  #watchedUntil(atMs: number): void {
    this.#decide(Math.min(atMs, this.#lastEndMs(atMs)), causeOfPicture(this.#last))
    this.#pictures.ends()
  }

  /** One picture's time after the last. */
  #lastEndMs(atMs: number): number {
    return (this.#last?.arrivedMs ?? atMs) + this.#usualGapMs
  }

  /** Too long a time without a picture that was looked at. */
  #missed(atMs: number): void {
    const cause = this.#causeOfGap
    this.#watchedUntil(atMs)
    this.#cause = cause
    this.#isWatched = false
    this.#againMs = undefined
  }

  /** Of pictures that were not looked at, or did not come at all. One more than there was may be on its way. */
  get #causeOfGap(): BlindCause {
    return this.#received > (this.#last?.received ?? 0) + 1 ? 'shed' : 'stalled'
  }

  #mayEnd(arrivedMs: number, apartMs: number): void {
    if (this.#againMs === undefined || apartMs > this.holdMs) {
      this.#againMs = arrivedMs
      return
    }
    this.#decide(this.#againMs, this.#cause)
    this.#isWatched = true
    this.#againMs = undefined
    this.#pictures.begins()
    this.#decide(arrivedMs, causeOfPicture(this.#last))
  }

  #look(nowMs: number): void {
    const lastMs = this.#last?.arrivedMs ?? -Infinity
    if (this.#isWatched) {
      if (nowMs - lastMs <= this.holdMs + resultLagMs) return
      this.#missed(nowMs)
    }
    // The first pictures of what goes on again are known after they came.
    const isLive = this.#state === 'live'
    if (isLive) this.#decide(Math.min(nowMs - resultLagMs, this.#againMs ?? Infinity), this.#cause)
    else this.#decide(nowMs, this.#cause)
    const waitedMs = nowMs - Math.max(this.#liveMs, lastMs)
    // It says that it is live, and is not watched for other reasons than the one before.
    if (isLive && waitedMs > this.holdMs + resultLagMs) this.#cause = this.#causeOfGap
  }
}

/** What an engine's end does not make the cause: it is not for the engine that nothing is seen. */
const keptOverEngines: Partial<Record<BlindCause, true>> = { disabled: true, service_down: true }

function causeOfPicture(picture: LookedAt | undefined): BlindCause | null {
  return picture?.isSuspect === true ? 'suspect' : null
}

/** @param cause - why it was blind before, if it was. */
function causeOf(state: Exclude<CameraState, 'live'>, before: CameraState, cause: BlindCause): BlindCause {
  switch (state) {
    case 'disabled':
      return 'disabled'
    case 'failed':
      return 'disconnected'
    case 'stalled':
      return 'stalled'
    case 'backoff':
      // The decoder of a stalled camera was ended; from the next try on it is the try that fails.
      return before === 'stalled' ? 'stalled' : 'disconnected'
    case 'connecting':
      return before === 'live' ? 'disconnected' : cause
    default:
      return state satisfies never
  }
}
