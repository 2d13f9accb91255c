import type { CameraConfig } from '../config/camera.js'
import type { Quiet, SignsOfLife } from './session.js'

/** Silence that every camera is granted, where the settings say nothing. */
export const usualSilenceMs = 5_000
/** A picture may be late, and one may be lost. */
const lateShare = 2.5
/** Times between pictures that tell how often they come. */
const keptGaps = 8
const leastGaps = 3
/** Granted before they are known: twice the time between the pictures of a camera of one a minute, and some. */
const unknownMs = 150_000
const longestMs = 900_000

/** Longest wait for a first picture. It is long, because a camera that hangs comes back soonest in an attempt that still waits. */
const firstPictureMs = 30_000
/** The same from a camera whose session lives and that sends nothing: its next picture may be a while off. */
const firstOfQuietMs = 300_000
/** The same while pictures come, of which the decoder waits for a key frame; {@link fewPictures} tell that they come rarely. */
const firstKeyMs = 1_200_000
const fewPictures = 300

/** A session that ends in silence after so short a time of pictures was not helped by its beginning anew. */
const briefMs = 10_000
/** A silence is looked back at for as many times its own length, and for so long at least. */
const rememberedTimes = 5
const rememberedMs = 60_000

/**
 * How long a camera may be silent before it is taken for stalled, by what is known of the times between its pictures. One for each
 * camera, over the lives of its decoders. Times in ms; those of calls are of the monotonic clock.
 *
 * What the settings say holds. Else it is 5 s; more for a camera whose pictures are further apart, which has been quiet for longer in a
 * session that lived, or that fell silent again each time that it was opened anew.
 */
export class PictureRhythm {
  /** Between pictures of one session, the newest last. */
  #gapsMs: number[] = []
  /** Silences that ended by themselves, longer than usual. */
  #quiet: readonly Quiet[] = []
  #patienceMs = 0
  #first: number | undefined
  #last: Readonly<{ atMs: number; ptsMs: number | null }> | undefined

  constructor(readonly camera: Pick<CameraConfig, 'stallTimeoutMs' | 'sampleFps'>) {}

  /** Sampled pictures are so far apart even when all is well. */
  get #periodMs(): number {
    return 1_000 / this.camera.sampleFps
  }

  /** Silence that is borne in any case; the first look at {@link silenceMs} is due then. */
  get leastMs(): number {
    return (this.camera.stallTimeoutMs ?? usualSilenceMs) + this.#periodMs
  }

  /** Wait for a first picture that is borne in any case; the first look at {@link firstPictureMs} is due then. */
  get leastFirstMs(): number {
    return Math.max(this.leastMs, 2 * (this.camera.stallTimeoutMs ?? 0), firstPictureMs)
  }

  /** A decoder is about to begin. */
  begins(): void {
    this.#first = undefined
    this.#last = undefined
  }

  /** @param ptsMs - stream time; null where there is none. */
  picture(atMs: number, ptsMs: number | null): void {
    const last = this.#last
    this.#first ??= atMs
    this.#last = { atMs, ptsMs }
    if (last === undefined) return
    const cameMs = atMs - last.atMs
    // Those that a camera or a network kept come in a burst.
    const meantMs = ptsMs === null || last.ptsMs === null ? 0 : ptsMs - last.ptsMs
    this.#gapsMs = [...this.#gapsMs, Math.max(0, Math.max(cameMs, meantMs) - this.#periodMs)].slice(-keptGaps)
    this.#wasQuiet({ forMs: cameMs - this.#periodMs, endedMs: atMs })
    const steadyMs = this.#steadyMs
    if (steadyMs !== undefined && atMs - this.#first >= lookBackMs(steadyMs)) this.#patienceMs = 0
  }

  /** How long no picture may come from a camera that is live. */
  silenceMs(nowMs: number, signs: SignsOfLife | undefined): number {
    if (this.camera.stallTimeoutMs !== undefined) return this.leastMs
    if (signs?.life === 'gone') return this.leastMs
    if (signs?.quiet !== undefined) this.#wasQuiet(signs.quiet)
    return this.#longestSilenceMs(nowMs) + this.#periodMs
  }

  /**
   * How long the first picture may be waited for.
   *
   * @param isOpen - the camera has said that it sends.
   */
  firstPictureMs(nowMs: number, isOpen: boolean, signs: SignsOfLife | undefined): number {
    if (this.camera.stallTimeoutMs !== undefined || !isOpen || signs?.life === 'gone')
      return this.leastFirstMs
    const knownMs = Math.max(this.leastFirstMs, this.#longestSilenceMs(nowMs))
    if (signs?.life !== 'alive') return knownMs
    const pictures = signs.pictures ?? 0
    if (pictures >= fewPictures) return this.leastFirstMs
    if (pictures > 0) return firstKeyMs
    return this.#steadyMs === undefined ? firstOfQuietMs : knownMs
  }

  /** A camera that has said that it sends is about to be opened anew, after so long a silence. */
  stalled(silentMs: number, signs: SignsOfLife | undefined): void {
    const isBrief = this.#first === undefined || (this.#last?.atMs ?? 0) - this.#first < briefMs
    if (isBrief && signs?.life !== 'gone') this.#patienceMs = Math.min(longestMs, 2 * silentMs)
  }

  /** Between pictures, in the middle; undefined while too few have come. */
  get #steadyMs(): number | undefined {
    if (this.#gapsMs.length < leastGaps) return undefined
    return this.#gapsMs.toSorted((a, b) => a - b)[Math.floor(this.#gapsMs.length / 2)]
  }

  #longestSilenceMs(nowMs: number): number {
    this.#quiet = this.#quiet.filter(({ forMs, endedMs }) => endedMs + lookBackMs(forMs) > nowMs)
    const knownMs = this.#steadyMs === undefined ? unknownMs : lateShare * this.#steadyMs
    const quietMs = lateShare * Math.max(0, ...this.#quiet.map(({ forMs }) => forMs))
    return Math.min(longestMs, Math.max(usualSilenceMs, knownMs, quietMs, this.#patienceMs))
  }

  #wasQuiet(quiet: Quiet): void {
    if (quiet.forMs <= usualSilenceMs || this.#quiet.some(({ endedMs }) => endedMs === quiet.endedMs)) return
    this.#quiet = [...this.#quiet, quiet].slice(-keptGaps)
  }
}

/** How long a time between pictures says something of those to come. */
function lookBackMs(forMs: number): number {
  return Math.max(rememberedMs, rememberedTimes * forMs)
}
