import { describe, expect, it } from 'vitest'
import { causeOf, type SlowRun, slowRunTeller } from '../../src/runtime/slow-runs.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import { recordingLog } from '../support/silent-log.js'

const slow: SlowRun = { items: 4, ms: 1_100.4, medianMs: 7.126, shapes: 'first' }
const calm = () => 0

describe('R44: slow runs', () => {
  it('are counted by the recorder, for each size by itself', () => {
    const told: SlowRun[] = []
    const recorder = new StatisticsRecorder('m', '1')
    recorder.onSlowRun = (run) => told.push(run)
    const run = (items: number, ms: number) =>
      recorder.recordExecution(items, { computeInputNs: 0, computeInferNs: ms * 1e6, computeOutputNs: 0 })
    for (let count = 0; count < 8; count += 1) {
      run(1, 2)
      run(32, 40)
    }
    run(32, 60)
    run(1, 60)
    expect(recorder.slowRuns).toBe(1)
    expect(told).toEqual([{ items: 1, ms: 60, medianMs: 2, shapes: undefined }])
  })

  it('are told once a minute, with how many there were', () => {
    const { log, lines } = recordingLog()
    let nowMs = 5_000
    const tell = slowRunTeller(
      'm',
      () => false,
      log,
      () => nowMs,
    )
    for (let run = 0; run < 5; run += 1) tell(slow)
    nowMs += 59_999
    tell(slow)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      level: 40,
      msg: 'a run took more than ten times the median of its size',
      model: 'm',
      items: 4,
      ms: 1_100,
      medianMs: 7.13,
      slowRuns: 1,
      cause: 'first run of its session with these shapes',
    })
    nowMs += 1
    tell(slow)
    expect(lines[1]).toMatchObject({ slowRuns: 6 })
  })

  it.each<[SlowRun['shapes'], boolean, number, number, RegExp]>([
    ['first', true, 90, 90, /^first run of its session/],
    ['changed', true, 90, 90, /^other shapes than those of the run before/],
    [
      'changed',
      false,
      0,
      63.4,
      /^the processors are busy: something waited for one in 63 % of the last 10 s$/,
    ],
    [undefined, true, 12, 63, /^the machine is short of memory: something waited for it in 12 %/],
    [undefined, true, 0, 0, /^not known: others may use the card/],
    [undefined, false, 0, 0, /^not known$/],
  ])(
    'have a cause: shapes %s, on a GPU %s, memory %d, processors %d',
    (shapes, onGpu, memory, cpu, cause) => {
      const waiting = (resource: 'cpu' | 'memory') => (resource === 'cpu' ? cpu : memory)
      expect(causeOf({ ...slow, shapes }, onGpu, waiting)).toMatch(cause)
    },
  )

  it('have one where the kernel tells nothing', () => {
    expect(causeOf({ ...slow, shapes: undefined }, false, () => undefined)).toBe('not known')
    expect(causeOf({ ...slow, shapes: 'changed' }, false, calm)).toBe('not known')
  })
})
