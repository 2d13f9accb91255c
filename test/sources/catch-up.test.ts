import { beforeEach, describe, expect, it } from 'vitest'
import { CatchUp } from '../../src/sources/catch-up.js'

/** A camera of 25 pictures a second and two packets each, every tenth one a key frame, and a decoder that lags behind. */
class Lag {
  readonly said: string[] = []
  readonly numbers: number[] = []
  readonly passed: number[] = []
  readonly catchUp: CatchUp
  #n = 0

  constructor(
    sdp = 'a=rtpmap:96 H264/90000\r\n',
    readonly gop = 10,
  ) {
    this.catchUp = new CatchUp({ sampleFps: 5, left: (detail) => this.said.push(detail) })
    this.catchUp.described(sdp)
  }

  get newestMs(): number {
    return (this.#n - 1) * 40
  }

  pictures(count: number): void {
    for (let n = 0; n < count; n += 1) {
      const isKey = this.#n % this.gop === 0
      const nals = [isKey ? 0x65 : 0x41, isKey ? 0x65 : 0x41]
      for (const [place, nal] of nals.entries()) {
        const packet = Buffer.alloc(40)
        packet.set([0x24, 0, 0, 36, 0x80, 96 | (place === 1 ? 0x80 : 0)])
        packet.writeUInt16BE((65_500 + 2 * this.#n + place) & 0xffff, 6)
        packet.writeUInt32BE(90 * 40 * this.#n, 8)
        packet[16] = nal
        if (!this.catchUp.passes(packet, 0, this.#n * 40)) continue
        this.numbers.push(packet.readUInt16BE(6))
        if (place === 0) this.passed.push(this.#n)
      }
      this.#n += 1
    }
  }

  /** The decoder shows a picture that came so many before the newest. */
  shows(behind: number): void {
    this.showsPicture(this.newestMs / 40 - behind)
  }

  showsPicture(number: number): void {
    this.catchUp.shown(number * 40, this.newestMs)
  }

  /** For long enough that it is no moment alone. */
  isLate(behind: number): void {
    this.shows(behind)
    this.pictures(25)
    this.shows(behind)
  }

  expectNumbered(): void {
    const wrong = this.numbers.filter(
      (number, n) => n > 0 && number !== (((this.numbers[n - 1] ?? 0) + 1) & 0xffff),
    )
    expect(wrong).toEqual([])
  }
}

describe('a decoder that falls behind', () => {
  let lag: Lag
  beforeEach(() => {
    lag = new Lag()
    lag.pictures(20)
    lag.shows(1)
  })

  it('R62: is given nothing more until it has caught up, and then a key frame, and misses no number', () => {
    lag.pictures(60)
    lag.isLate(58)
    expect(lag.catchUp.isSkipping).toBe(false)
    lag.pictures(25)
    expect(lag.catchUp.isSkipping).toBe(true)
    lag.shows(60)
    lag.pictures(5)
    expect(lag.catchUp.isSkipping).toBe(true)
    // 105 were handed on, up to number 104; 15 of them have not been shown.
    lag.showsPicture(89)
    lag.pictures(15)
    expect(lag.catchUp.isSkipping).toBe(false)
    expect(lag.passed.slice(0, 105)).toEqual(Array.from({ length: 105 }, (_, n) => n))
    expect(lag.passed[105]).toBe(140)
    expect(lag.said).toEqual(['the decoder was 2.3 s behind: 35 pictures left out'])
    lag.expectNumbered()
    lag.shows(3)
    lag.pictures(30)
    lag.shows(3)
    expect(lag.catchUp.isSkipping).toBe(false)
  })

  it('R62: is behind, too, where what is handed on waits in our memory for most of the time', () => {
    const wait = (waitsMs: number, flowsMs: number, times: number, atMs = 0) => {
      for (let n = 0; n < times; n += 1) {
        const beginMs = atMs + n * (waitsMs + flowsMs)
        lag.catchUp.waits(true, beginMs)
        lag.catchUp.waits(false, beginMs + waitsMs)
      }
      lag.catchUp.waits(false, atMs + times * (waitsMs + flowsMs))
      lag.pictures(1)
    }
    wait(400, 600, 60)
    expect(lag.catchUp.isSkipping).toBe(false)
    wait(800, 200, 5, 60_000)
    expect(lag.catchUp.isSkipping).toBe(true)
  })

  it('is left alone while it is late by little', () => {
    for (let n = 0; n < 20; n += 1) {
      lag.pictures(25)
      lag.shows(45)
    }
    expect(lag.passed).toHaveLength(520)
  })

  it('is left alone where its clock began elsewhere', () => {
    const other = new Lag()
    for (let n = 0; n < 20; n += 1) {
      other.pictures(25)
      other.shows(200)
    }
    expect(other.passed).toHaveLength(500)
  })

  it('is left alone where nothing is known of what the camera sends', () => {
    const unknown = new Lag('a=rtpmap:96 VP8/90000\r\n')
    unknown.pictures(20)
    unknown.shows(1)
    unknown.pictures(100)
    unknown.isLate(90)
    unknown.pictures(50)
    expect(unknown.passed).toHaveLength(195)
  })

  it('goes on without a key frame where none comes in a quarter of a minute, and is left alone from then on', () => {
    const endless = new Lag(undefined, 1_000_000)
    endless.pictures(20)
    endless.shows(1)
    endless.pictures(70)
    endless.isLate(65)
    endless.pictures(500)
    expect(endless.catchUp.isSkipping).toBe(false)
    expect(endless.passed.length).toBeLessThan(250)
    endless.expectNumbered()
    const had = endless.passed.length
    endless.isLate(80)
    endless.pictures(100)
    expect(endless.passed).toHaveLength(had + 125)
  })

  it('is left alone where it is as late right behind it as before: that says nothing of it', () => {
    lag.pictures(60)
    lag.isLate(59)
    lag.pictures(10)
    lag.showsPicture(104)
    lag.pictures(30)
    expect(lag.said).toHaveLength(1)
    lag.isLate(70)
    lag.pictures(100)
    expect(lag.said).toHaveLength(1)
    expect(lag.catchUp.isSkipping).toBe(false)
  })
})

it('a camera of few pictures is never late by what B-frames hold back', () => {
  const slow = new CatchUp({ sampleFps: 5, left: () => expect.unreachable() })
  slow.described('a=rtpmap:96 H264/90000\r\n')
  for (let n = 0; n < 60; n += 1) {
    const packet = Buffer.alloc(40)
    packet.set([0x24, 0, 0, 36, 0x80, 96 | 0x80])
    packet.writeUInt32BE((90 * 60_000 * n) % 2 ** 32, 8)
    expect(slow.passes(packet, 0, n * 60_000)).toBe(true)
    if (n > 4) slow.shown((n - (n < 8 ? 1 : 4)) * 60_000, n * 60_000)
  }
})
