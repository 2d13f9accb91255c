import type { DecoderMemory } from './decoder-memory.js'

/** Longest that the next picture of a file is waited for. Time-lapse films have a picture a minute; a disk that hangs may not tell. */
const longestPauseMs = 3_600_000
/** A damaged file that is played again and again has shown a picture by then. */
const longestBeginMs = 2_000
/** Of an FLV file with one picture ffmpeg finds no second round, and looks for it as fast as it can. */
const shortestFlvSeconds = 1

export type FilePlayingOptions = Readonly<{
  /** It is played again and again. */
  loop: boolean
  memory: Pick<DecoderMemory, 'once'>
  /** Ends this decoder for another one, which plays the file to its end, once. */
  beginAnew(reason: string): void
}>

/**
 * How a file that is played again and again comes from its end to its start: by itself, without a seam, as long as its decoder can do so; else
 * it is begun anew each time. Times in ms, of the monotonic clock.
 */
export class FilePlaying {
  #format = ''
  #openedMs: number | undefined
  #seconds = 0

  constructor(readonly options: FilePlayingOptions) {}

  /** @param format - ffmpeg's name of the container, or of the codec where there is none. */
  opened(format: string, nowMs: number): void {
    this.#format = format
    this.#openedMs = nowMs
    if (isUnwindable(format))
      this.#once(`a file of ${format} cannot be wound back: playing it from its start each time`)
  }

  /** The container tells how long it is. */
  lasts(seconds: number): void {
    this.#seconds = seconds
    if (this.#format === 'flv' && seconds < shortestFlvSeconds)
      this.#once('the file is too short to be wound back: playing it from its start each time')
  }

  /** Where in the file a picture is, by its time in a run that may have begun anew several times; in seconds. */
  placeS(ptsMs: number): number {
    const atS = Math.max(0, ptsMs / 1_000)
    return this.#seconds > 0 ? atS % this.#seconds : atS
  }

  /** A file that is damaged, and has shown nothing so far, may never: it is played to its end, to find out. */
  damagedBefore(nowMs: number): void {
    if (nowMs - (this.#openedMs ?? nowMs) >= longestBeginMs)
      this.#once('no picture of it could be decoded so far: playing it to its end')
  }

  #once(reason: string): void {
    const { loop, memory, beginAnew } = this.options
    if (!loop || memory.once === true) return
    memory.once = true
    beginAnew(reason)
  }
}

/** Whether the next picture of a file may still come: they are shown when they are due, however far they are apart. */
export function isPaused(silentMs: number, isHeldUp: boolean): boolean {
  return !isHeldUp && silentMs < longestPauseMs
}

/** Raw streams have no place to go back to; of transport streams ffmpeg leaves out all up to the second key frame. */
function isUnwindable(format: string): boolean {
  return /^(h264|hevc|m4v|mpegvideo|mpegts|mpeg)$/.test(format)
}
