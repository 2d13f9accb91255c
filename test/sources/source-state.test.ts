import { describe, expect, it } from 'vitest'
import type { SessionEnd } from '../../src/sources/session.js'
import {
  initialSourceState,
  stepSource,
  type SourceEvent,
  type SourcePolicy,
  type SourceState,
} from '../../src/sources/source-state.js'

const policy: SourcePolicy = {
  backoff: { baseMs: 500, capMs: 30_000 },
  stableMs: 60_000,
  loop: true,
  random: () => 0.5,
}
const failed = (retry: 'normal' | 'slow' | 'login' | 'never' = 'normal'): SourceEvent => ({
  type: 'ended',
  end: { kind: 'failed', reason: 'connection refused', retry },
})
const ended = (end: SessionEnd): SourceEvent => ({ type: 'ended', end })

/** Runs events given as [at ms, event]; gives the state and the effects of the last. */
function run(events: readonly (readonly [number, SourceEvent])[], using: SourcePolicy = policy) {
  return events.reduce(({ state }, [atMs, event]) => stepSource(state, event, atMs, using), {
    state: initialSourceState,
    effects: [],
  } as ReturnType<typeof stepSource>)
}

const connecting = [
  [0, { type: 'start' }],
  [0, { type: 'admitted' }],
] as const
const live = [...connecting, [300, { type: 'picture' }]] as const

describe('stepSource', () => {
  it('asks for a place at the gate before it opens a session', () => {
    const queued = run([[0, { type: 'start' }]])
    expect(queued.effects.map((effect) => effect.type)).toEqual(['status', 'queue'])
    expect(run(connecting).effects.map((effect) => effect.type)).toEqual(['open', 'status'])
    expect(run(connecting).state.attempts).toBe(1)
  })

  it('tells what was wrong while it tries again, until a picture comes', () => {
    const retried = [...connecting, [100, failed()], [900, { type: 'retry' }]] as const
    const reasonOf = (events: Parameters<typeof run>[0]) =>
      run(events).effects.flatMap((effect) => (effect.type === 'status' ? [effect.status.reason] : []))
    expect(reasonOf(retried)).toEqual(['waiting for its turn to connect; before: connection refused'])
    const open = [...retried, [900, { type: 'admitted' }]] as const
    expect(reasonOf(open)).toEqual(['waiting for the first picture; before: connection refused'])
    expect(reasonOf([...open, [1_000, { type: 'picture' }]])).toEqual([''])
    expect(run([...open, [1_000, { type: 'picture' }]]).state.failure).toBe('')
  })

  it('R61: tells what is known while the first picture takes long, anew each half minute', () => {
    const waits = (forMs: number): SourceEvent => ({ type: 'waits', forMs, known: 'the camera answers' })
    const reasonAt = (forMs: number) => run([...connecting, [forMs, waits(forMs)]]).effects
    const told = (reason: string) => [{ type: 'status', status: { state: 'connecting', reason } }]
    expect(reasonAt(5_000)).toEqual(told('waiting for the first picture: the camera answers'))
    expect(reasonAt(31_000)).toEqual(told('waiting for the first picture, for 30 s: the camera answers'))
    expect(reasonAt(59_000)).toEqual(reasonAt(31_000))
    expect(run([...live, [40_000, waits(40_000)]]).effects).toEqual([])
  })

  it('R61: says what is known of a camera that fell silent', () => {
    const silent = { type: 'silent', silentMs: 5_012, known: ' (stallTimeoutMs is 5000)' } as const
    expect(run([...live, [6_000, silent]]).effects[0]).toEqual({
      type: 'status',
      status: { state: 'stalled', reason: 'no picture for 5.0 s (stallTimeoutMs is 5000)' },
    })
  })

  it('leaves the gate when its stream is open, whenever the next key frame comes', () => {
    const opened = run([...connecting, [200, { type: 'opened' }]])
    expect(opened.effects).toEqual([{ type: 'leaveGate' }])
    expect(opened.state).toEqual(run(connecting).state)
    expect(run([...live, [400, { type: 'opened' }]]).effects).toEqual([])
  })

  it('leaves the gate with the first picture at the latest', () => {
    expect(run(live).effects).toEqual([
      { type: 'leaveGate' },
      { type: 'status', status: { state: 'live', reason: '' } },
    ])
  })

  it('is stalled while a silent session is being stopped, and waits once it has ended', () => {
    const silent = run([...live, [6_000, { type: 'silent', silentMs: 5_012 }]])
    expect(silent.effects).toEqual([
      { type: 'status', status: { state: 'stalled', reason: 'no picture for 5.0 s' } },
      { type: 'leaveGate' },
      { type: 'stopSession' },
    ])
    const after = stepSource(silent.state, ended({ kind: 'finished' }), 7_000, policy)
    expect(after.effects).toEqual([
      { type: 'status', status: { state: 'backoff', reason: 'no picture for 5.0 s', retryInMs: 250 } },
      { type: 'retryIn', forMs: 250 },
    ])
  })

  it.each([
    [
      'doubles the wait with each failure',
      [0, 1, 2, 3, 4, 5, 6, 7],
      [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000],
    ],
  ])('%s up to the cap', (_, indexes, waits) => {
    let state = initialSourceState
    const seen = indexes.map((index) => {
      const at = index * 100_000
      state = stepSource(state, index === 0 ? { type: 'start' } : { type: 'retry' }, at, policy).state
      state = stepSource(state, { type: 'admitted' }, at, policy).state
      const step = stepSource(state, failed(), at, policy)
      state = step.state
      return step.effects.flatMap((effect) => (effect.type === 'retryIn' ? [effect.forMs] : []))[0]
    })
    expect(seen).toEqual(waits)
  })

  it.each([
    ['starts the wait anew after a stable minute', 60_300, 250],
    ['does not after a shorter life', 60_299, 4_000],
  ])('%s', (_, endsMs, waitMs) => {
    const worn = { ...run(live).state, failures: 4 }
    const { effects } = stepSource(worn, failed(), endsMs, policy)
    expect(effects).toContainEqual({ type: 'retryIn', forMs: waitMs })
  })

  it('counts the time of a fruitless attempt as waiting, so that a camera which hangs is nearly always being tried', () => {
    const worn = { ...run(connecting).state, failures: 8 }
    const hung = stepSource(worn, { type: 'silent', silentMs: 30_000 }, 30_000, policy).state
    expect(stepSource(hung, failed(), 31_000, policy).effects).toContainEqual({ type: 'retryIn', forMs: 50 })
  })

  it('waits long at once after refused credentials, because cameras lock accounts', () => {
    expect(run([...connecting, [200, failed('slow')]]).effects).toContainEqual({
      type: 'retryIn',
      forMs: 14_800,
    })
  })

  it('R65: tries a refused login ever more rarely, however often the camera was away in between', () => {
    const waits: number[] = []
    let state = run(connecting).state
    const ends = (event: SourceEvent) => {
      const step = stepSource(state, event, 0, policy)
      for (const effect of step.effects) if (effect.type === 'retryIn') waits.push(effect.forMs)
      state = [{ type: 'retry' } as const, { type: 'admitted' } as const].reduce(
        (before, next) => stepSource(before, next, 0, policy).state,
        step.state,
      )
    }
    for (let away = 0; away < 20; away += 1) ends(failed())
    waits.length = 0
    for (let refused = 0; refused < 6; refused += 1) ends(failed('login'))
    expect(waits).toEqual([45_000, 90_000, 180_000, 360_000, 450_000, 450_000])
    state = stepSource(state, { type: 'picture' }, 0, policy).state
    waits.length = 0
    ends(failed('login'))
    expect(waits).toEqual([45_000])
  })

  it('gives up where trying again cannot help', () => {
    const { state, effects } = run([...connecting, [200, failed('never')]])
    expect(effects).toContainEqual({
      type: 'status',
      status: { state: 'failed', reason: 'connection refused' },
    })
    expect(stepSource(state, { type: 'retry' }, 500, policy).effects).toEqual([])
  })

  it.each([
    ['begins material anew at once when it ends', true, 2_000, ['leaveGate', 'status', 'queue']],
    ['does not spin when it ends at once', true, 600, ['leaveGate', 'status', 'retryIn']],
    ['rests at the end when it shall not loop', false, 2_000, ['leaveGate', 'status']],
  ])('%s', (_, loop, atMs, effects) => {
    const step = run([...live, [atMs, ended({ kind: 'finished' })]], { ...policy, loop })
    expect(step.effects.map((effect) => effect.type)).toEqual(effects)
  })

  it('begins again at once with what a session has learned', () => {
    const { effects } = run([...connecting, [200, ended({ kind: 'again', reason: 'no hardware decoder' })]])
    expect(effects.map((effect) => effect.type)).toEqual(['leaveGate', 'status', 'queue'])
  })

  it.each<SourceEvent>([
    { type: 'start' },
    { type: 'admitted' },
    { type: 'opened' },
    { type: 'picture' },
    { type: 'retry' },
  ])('ignores a late $type', (event) => {
    const before = run(live).state
    expect(stepSource(before, event, 900, policy)).toEqual({ state: before, effects: [] })
  })

  it('R7: 32 cameras are back within 35 s of an outage of a minute, without a storm', () => {
    const upMs = 60_000
    let seed = 7
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
    const backAfter = Array.from({ length: 32 }, () => {
      let state: SourceState = { ...run(live).state }
      let atMs = 0
      let attempts = 0
      state = stepSource(state, failed(), atMs, { ...policy, random }).state
      for (;;) {
        atMs += random() // refused within a millisecond
        state = { ...state, phase: { name: 'connecting', sinceMs: atMs } }
        if (atMs >= upMs) return { ms: atMs - upMs, attempts }
        attempts += 1
        const step = stepSource(state, failed(), atMs, { ...policy, random })
        state = step.state
        atMs += step.effects.flatMap((effect) => (effect.type === 'retryIn' ? [effect.forMs] : []))[0] ?? 0
      }
    })
    expect(backAfter.filter(({ ms }) => ms <= 35_000).length / 32).toBeGreaterThanOrEqual(0.95)
    expect(Math.max(...backAfter.map(({ attempts }) => attempts))).toBeLessThan(30)
  })
})
