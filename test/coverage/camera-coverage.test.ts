import { describe, expect, it } from 'vitest'
import { CameraCoverage, type Stretch } from '../../src/coverage/camera-coverage.js'
import type { CameraState } from '../../src/vision/camera-state.js'
import type { PictureVerdict } from '../../src/vision/coverage.js'

const fine: PictureVerdict = { trouble: null, sinceMs: 0, doubtMs: null }

/** One camera whose engine tells of it once a second, at 5 pictures a second. */
class Rig {
  readonly coverage: CameraCoverage
  readonly settled: Stretch[] = []
  atMs = 1_000
  received = 0
  verdict = fine
  hasEngine = true

  constructor(readonly periodMs = 200) {
    this.coverage = new CameraCoverage(this.atMs, 'service_down', () => periodMs)
  }

  /** Time goes by. @param frames - what becomes of the pictures that come. */
  pass(forMs: number, frames: 'ok' | 'suspect' | 'shed' | 'none' = 'none'): this {
    const untilMs = this.atMs + forMs
    let nextBeatMs = Math.ceil((this.atMs + 1) / 1_000) * 1_000
    let nextFrameMs = frames === 'none' ? Infinity : this.atMs + this.periodMs
    for (;;) {
      this.atMs = Math.min(untilMs, nextBeatMs, nextFrameMs)
      if (this.atMs === nextFrameMs) {
        this.received += 1
        nextFrameMs += this.periodMs
        if (frames !== 'shed') {
          const { atMs, received } = this
          const isSuspect = frames === 'suspect'
          this.coverage.lookedAt({ arrivedMs: atMs, isSuspect, received, gapsMs: [this.periodMs] })
        }
      }
      if (this.atMs === nextBeatMs) {
        nextBeatMs += 1_000
        if (this.hasEngine) this.coverage.told({ received: this.received, picture: this.verdict }, this.atMs)
        this.settled.push(...this.coverage.settle(this.atMs))
      }
      if (this.atMs >= untilMs) return this
    }
  }

  is(state: CameraState): this {
    this.coverage.status(state, this.atMs)
    return this
  }

  /** All of its time, with neighbours of one cause made one. */
  get time(): readonly (readonly [cause: string, fromMs: number, toMs: number])[] {
    const merged: [string, number, number][] = []
    for (const { cause, fromMs, toMs } of [...this.settled, ...this.coverage.open(this.atMs)]) {
      const last = merged.at(-1)
      if (last?.[0] === (cause ?? 'watched')) last[2] = toMs
      else merged.push([cause ?? 'watched', fromMs, toMs])
    }
    return merged
  }
}

const started = () => new Rig().is('connecting').pass(3_000).is('live').pass(20_000, 'ok')

describe('CameraCoverage', () => {
  it('R125: is blind from the start until pictures flow, whatever the start waits for', () => {
    expect(started().time).toEqual([
      ['service_down', 1_000, 4_200],
      ['watched', 4_200, 24_000],
    ])
  })

  it('R125: is blind one picture after the last when the camera is gone, until the first of the next', () => {
    const rig = started().pass(500).is('backoff').pass(4_500).is('connecting').pass(1_000).is('live')
    expect(rig.pass(5_000, 'ok').time.slice(1)).toEqual([
      ['watched', 4_200, 24_200],
      ['disconnected', 24_200, 30_200],
      ['watched', 30_200, 35_000],
    ])
  })

  it('R125: knows a camera that hangs from one that is gone, from its last picture on', () => {
    const rig = started().pass(8_000).is('stalled').is('backoff').pass(1_000).is('connecting').pass(2_000)
    rig.is('backoff').pass(3_000)
    expect(rig.time.slice(1)).toEqual([
      ['watched', 4_200, 24_200],
      ['stalled', 24_200, 35_000],
      ['disconnected', 35_000, 38_000],
    ])
  })

  it('R126: is blind while pictures come and too few are looked at, and one here and there is no watching', () => {
    const rig = started()
    for (let times = 0; times < 5; times += 1) rig.pass(4_000, 'shed').pass(200, 'ok')
    expect(rig.pass(3_000, 'ok').time.slice(1)).toEqual([
      ['watched', 4_200, 24_200],
      ['shed', 24_200, 45_000],
      ['watched', 45_000, 48_000],
    ])
  })

  it('R126: a pause shorter than two seconds leaves nothing unseen', () => {
    const rig = started().pass(1_700).pass(3_000, 'ok')
    expect(rig.time.slice(1)).toEqual([['watched', 4_200, rig.atMs]])
  })

  it('R126: pictures that the decoder complains of are blind, each until the next', () => {
    const rig = started().pass(2_000, 'suspect').pass(2_000, 'ok')
    expect(rig.time.slice(1)).toEqual([
      ['watched', 4_200, 24_200],
      ['suspect', 24_200, 26_200],
      ['watched', 26_200, 28_000],
    ])
  })

  it('R127: the engine is to blame until pictures flow again, the camera once it is seen to be away', () => {
    const rig = started()
    rig.coverage.engineGone(rig.atMs)
    rig.is('connecting').pass(3_000)
    rig.is('backoff').pass(1_000).is('connecting').is('live').pass(3_000, 'ok')
    expect(rig.time.slice(1)).toEqual([
      ['watched', 4_200, 24_000],
      ['engine_down', 24_000, 27_000],
      ['disconnected', 27_000, 28_200],
      ['watched', 28_200, 31_000],
    ])
  })

  it('R127: one that is switched off stays so whatever becomes of its engine, and until its pictures flow', () => {
    const rig = started().is('disabled').pass(2_000)
    rig.coverage.engineGone(rig.atMs)
    rig.is('connecting').pass(1_000).is('live').pass(3_000, 'ok')
    expect(rig.time.slice(1)).toEqual([
      ['watched', 4_200, 24_000],
      ['disabled', 24_000, 27_200],
      ['watched', 27_200, 30_000],
    ])
  })

  it('R128: a frozen picture is blind from its first, and what was in doubt and thawed was watched', () => {
    const rig = started()
    const doubtMs = rig.atMs
    rig.verdict = { trouble: null, sinceMs: 0, doubtMs }
    rig.pass(10_000, 'ok')
    const inDoubt = rig.settled.at(-1)?.toMs ?? 0
    expect(inDoubt).toBeLessThanOrEqual(doubtMs)
    rig.verdict = { trouble: 'frozen_picture', sinceMs: doubtMs, doubtMs: null }
    rig.pass(5_000, 'ok')
    rig.verdict = { trouble: null, sinceMs: 39_000, doubtMs: null }
    rig.pass(5_000, 'ok')
    expect(rig.time.slice(1)).toEqual([
      ['watched', 4_200, 24_000],
      ['frozen_picture', 24_000, 39_000],
      ['watched', 39_000, 44_000],
    ])
  })

  it('R128: a picture is not judged while nobody looks at it', () => {
    const rig = started()
    rig.verdict = { trouble: 'dark', sinceMs: 20_000, doubtMs: null }
    rig.pass(2_000, 'ok').is('backoff').pass(4_000).is('connecting').is('live').pass(4_000, 'ok')
    expect(rig.time.map(([cause]) => cause)).toEqual([
      'service_down',
      'watched',
      'dark',
      'disconnected',
      'dark',
    ])
  })

  it('R126: a camera that sends one picture a minute is watched between them', () => {
    const rig = new Rig(60_000).is('connecting').is('live').pass(600_000, 'ok')
    expect(rig.time).toEqual([
      ['service_down', 1_000, 61_000],
      ['watched', 61_000, 601_000],
    ])
  })

  it('R125: fills all time without hole or overlap, whatever happens in whatever order', () => {
    const states: readonly CameraState[] = ['connecting', 'live', 'stalled', 'backoff', 'disabled', 'failed']
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = randomFrom(seed)
      const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
      const rig = new Rig(pick([100, 200, 1_000, 7_000]))
      for (let step = 0; step < 40; step += 1) {
        const what = Math.floor(random() * 6)
        if (what === 0) rig.is(pick(states))
        else if (what === 1) rig.coverage.engineGone(rig.atMs)
        else if (what === 2) {
          const sinceMs = rig.atMs - Math.floor(random() * 5_000)
          const doubtMs = random() < 0.3 ? rig.atMs - Math.floor(random() * 3_000) : null
          rig.verdict = { trouble: pick([null, 'dark', 'frozen_picture', 'moved']), sinceMs, doubtMs }
        } else rig.pass(Math.floor(random() * 9_000), pick(['ok', 'ok', 'suspect', 'shed', 'none']))
      }
      let endMs = 1_000
      for (const { fromMs, toMs } of [...rig.settled, ...rig.coverage.open(rig.atMs)]) {
        expect([seed, fromMs]).toEqual([seed, endMs])
        expect(toMs).toBeGreaterThan(fromMs)
        endMs = toMs
      }
      expect([seed, endMs]).toEqual([seed, rig.atMs])
    }
  })
})

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
