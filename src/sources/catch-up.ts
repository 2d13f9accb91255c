import { beginsKeyFrame, RtpClock, ticksPerMs, videoTypes, type RtpVideo } from './rtp-packet.js'

/** A decoder that shows what came so long ago, and has so many pictures before it, is behind, once that has lasted. */
const behindMs = 2_000
const lastingMs = 1_000
const mostFullMs = 3_000
const behindPictures = 12
/** It has caught up when what it shows is so old, beside the time between two pictures that are shown. */
const caughtUpMs = 500
/** Pictures are left out for so long at most: the stream may have no key frame, or its clock be another than that of the decoder. */
const longestMs = 15_000

export type CatchUpOptions = Readonly<{
  sampleFps: number
  /** Pictures were left out, and the next one follows. @param detail - how many, and why; for people. */
  left(detail: string): void
}>

/**
 * Leaves pictures out for a decoder that falls behind, until it has caught up and a key frame comes. Without it what a busy machine does
 * not decode in time waits in buffers of the system, minutes of it, and old pictures are shown as live.
 *
 * Packets are numbered anew, so that the decoder misses none. What it shows is compared with what came; where that says nothing, nothing
 * is left out any more. Times of calls in ms, of the monotonic clock.
 */
export class CatchUp {
  #types: ReadonlyMap<number, RtpVideo> = new Map()
  readonly #clock = new RtpClock()
  #firstTicks: number | undefined
  #ticks = NaN
  /** Of the last packet, as it stands there. */
  #rtpTime: number | undefined
  /** Of the last pictures that were handed on; the newest last. */
  readonly #passed: number[] = []
  /** What the decoder shows is as old at least: its clock may begin elsewhere. */
  #leastMs = Infinity
  #lateMs = 0
  #lateSinceMs: number | undefined
  #isFull = false
  #fullAtMs = 0
  /** For how long more it waited than it did not. */
  #fullMs = 0
  #isBehind = false
  #skipsSinceMs: number | undefined
  /** A key frame would be handed on, when one begins in this picture. */
  #mayResume = false
  #skippedPackets = 0
  #skippedPictures = 0
  #isOff = false
  /** It was left out for in vain, if the next look says that it is behind. */
  #isOnTrial = false

  constructor(readonly options: CatchUpOptions) {}

  get isSkipping(): boolean {
    return this.#skipsSinceMs !== undefined
  }

  /** The camera has described what it sends. @param sdp - RFC 4566. */
  described(sdp: string): void {
    this.#types = videoTypes(sdp)
  }

  /**
   * @param at - where a packet of the stream begins in `bytes`, with `$`; its head is there, and its number is changed.
   * @returns whether it is handed on.
   */
  passes(bytes: Buffer, at: number, nowMs: number): boolean {
    const rtpTime = bytes.readUInt32BE(at + 8)
    if (rtpTime !== this.#rtpTime) this.#picture(this.#clock.ticks(rtpTime), nowMs)
    this.#rtpTime = rtpTime
    if (this.isSkipping) {
      const video = this.#types.get((bytes[at + 5] ?? 0) & 0x7f)
      if (!this.#mayResume || video === undefined || !beginsKeyFrame(bytes, at, video)) {
        this.#skippedPackets += 1
        return false
      }
      this.#skippedPictures -= 1
      this.#resume()
    }
    if (this.#skippedPackets > 0)
      bytes.writeUInt16BE((bytes.readUInt16BE(at + 6) - this.#skippedPackets) & 0xffff, at + 6)
    return true
  }

  /** The decoder has shown a picture. */
  shown(ptsMs: number | null, nowMs: number): void {
    const oldest = this.#passed[0]
    if (ptsMs === null || this.#firstTicks === undefined || oldest === undefined) return
    const atMs = (this.#ticks - this.#firstTicks) / ticksPerMs - ptsMs
    this.#leastMs = Math.min(this.#leastMs, atMs)
    if (!this.isSkipping) this.#lateMs = atMs - this.#leastMs
    const shownTicks = this.#firstTicks + (ptsMs + this.#leastMs) * ticksPerMs
    const isFull = this.#passed.length === behindPictures
    const many = isFull && oldest > shownTicks
    if (this.isSkipping) {
      const restMs = ((this.#passed.at(-1) ?? 0) - shownTicks) / ticksPerMs
      if (restMs <= caughtUpMs + 1_000 / this.options.sampleFps) this.#isBehind = false
      return
    }
    const isLate = this.#lateMs > behindMs && many
    this.#lateSinceMs = isLate ? (this.#lateSinceMs ?? nowMs) : undefined
    const isBehind = nowMs - (this.#lateSinceMs ?? nowMs) >= lastingMs || this.#fullMs >= behindMs
    if (isFull && this.#isOnTrial) {
      this.#isOff = isLate
      this.#isOnTrial = false
    }
    this.#isBehind = isBehind && !this.#isOff
  }

  /**
   * Whether what was handed on waits in our memory, from now on: buffers of the system are full, which may be less than a second of a
   * large stream. They empty in steps, so that it waits for most of the time.
   */
  waits(isWaiting: boolean, nowMs: number): void {
    const forMs = nowMs - this.#fullAtMs
    this.#fullMs = Math.min(mostFullMs, Math.max(0, this.#fullMs + (this.#isFull ? forMs : -forMs)))
    this.#isFull = isWaiting
    this.#fullAtMs = nowMs
    if (this.#fullMs < behindMs || this.isSkipping || this.#isOff) return
    this.#lateMs = Math.max(this.#lateMs, behindMs)
    this.#isBehind = true
  }

  /** The first packet of a picture has come. */
  #picture(ticks: number, nowMs: number): void {
    this.#ticks = ticks
    this.#firstTicks ??= ticks
    if (this.#skipsSinceMs !== undefined) {
      const isLong = nowMs - this.#skipsSinceMs > longestMs
      if (isLong) this.#isOff = true
      this.#mayResume = !this.#isBehind || isLong
      if (isLong) this.#resume()
      else this.#skippedPictures += 1
    } else if (this.#isBehind && this.#types.size > 0) {
      this.#skipsSinceMs = nowMs
      this.#mayResume = false
      this.#skippedPictures = 1
    }
    if (this.isSkipping) return
    this.#passed.push(ticks)
    if (this.#passed.length > behindPictures) this.#passed.shift()
  }

  #resume(): void {
    const late = (this.#lateMs / 1e3).toFixed(1)
    this.options.left(`the decoder was ${late} s behind: ${this.#skippedPictures} pictures left out`)
    this.#skipsSinceMs = undefined
    this.#isBehind = false
    this.#lateSinceMs = undefined
    this.#fullMs = 0
    this.#isOnTrial = true
    this.#passed.length = 0
    this.#passed.push(this.#ticks)
  }
}
