import { describe, expect, it } from 'vitest'
import { EngineUnavailableError } from '../../../src/cameras/engine-errors.js'
import { ensembleChangeSchema } from '../../../src/config/ensemble-change.js'
import type { DetectorInfo } from '../../../src/detector/camera-detector.js'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { type ChangedEngine, EnsembleChange } from '../../../src/processes/control/ensemble-change.js'
import type { EngineQuestion } from '../../../src/processes/engine/protocol.js'
import { ModelNotFoundError } from '../../../src/repository/errors.js'
import { recordingLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

type Answer = (question: EngineQuestion) => unknown

const same = { frames: 10, before: 20, after: 20, matched: 19, failure: '' }

/** A change over engines that answer as they are told; the trial lasts until `endTrial`. */
function rig(
  answers: readonly Answer[] = [() => undefined],
  beforeMs: Readonly<Record<string, number>> = {},
) {
  const asked: string[] = []
  const used: string[] = []
  const started: string[] = []
  const { log, lines } = recordingLog()
  const metrics = createServiceMetrics()
  let endTrial: () => void = () => undefined
  const trialEnds = new Promise<void>((resolve) => (endTrial = resolve))
  const engines = answers.map((answer, index) => ({
    ready: true,
    setup: { index },
    ask: async (question: EngineQuestion) => {
      const { type, ...about } = question
      asked.push(
        [index, type, ...Object.values(about).filter((value) => typeof value === 'boolean')].join(' '),
      )
      const given = await Promise.resolve(answer(question))
      if (given !== undefined) return given
      return type === 'compareEnsembles' ? same : { model: { name: 'detector' } as unknown as DetectorInfo }
    },
  }))
  const change = new EnsembleChange({
    configured: 'old',
    engines: () => engines as unknown as ChangedEngine[],
    repositoriesFor: (name) => [`/models/${name}`],
    check: async (name) => {
      if (name === 'unknown') throw new ModelNotFoundError('no such model', 'Name another.')
    },
    p99Ms: () => new Map(Object.entries(beforeMs)),
    forgetP99: () => used.push('p99 forgotten'),
    uses: (index, _, isInForce) => used.push(`${index} ${isInForce ? 'in force' : 'on trial'}`),
    keep: ({ ensemble, repositories }) => started.push(`${ensemble} of ${repositories.join()}`),
    metrics,
    log,
    wait: () => trialEnds,
  })
  const begin = (trial: object = {}, name = 'new') =>
    change.begin(ensembleChangeSchema.parse({ name, trial }))
  const counted = async () =>
    (await metrics.ensembleChanges.get()).values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => `${labels.outcome} ${value}`)
  return {
    change,
    engines,
    asked,
    used,
    started,
    lines,
    counted,
    begin,
    endTrial,
    is: (state: string) => until(state, () => change.view.state === state),
  }
}

const never = () => new Promise(() => undefined)

describe('a change of the ensemble', () => {
  it('is kept when it agrees and is as fast, and then in force', async () => {
    const { change, begin, is, endTrial, asked, used, started, counted } = rig([() => undefined], {
      gate: 40,
    })
    const view = await begin()
    expect(view).toMatchObject({
      name: 'old',
      configured: 'old',
      state: 'loading',
      to: { name: 'new' },
      last: null,
    })
    await is('trial')
    await until('cameras on it', () => used.length === 1)
    change.published({ cameraId: 'gate', arrivedMs: nowMs() + 10_000 }, 41)
    endTrial()
    await is('steady')
    expect(change.view).toMatchObject({
      name: 'new',
      configured: 'old',
      to: null,
      last: {
        name: 'new',
        outcome: 'kept',
        reason:
          'agreement 0.950 on 10 frames: of 20 detections before and 20 after 19 are the same; p99 of capture to publish 40 ms before and 41 ms in the trial',
        agreement: 0.95,
        comparedFrames: 10,
        p99Ms: { before: 40, after: 41 },
      },
    })
    expect(asked).toEqual([
      '0 openEnsemble',
      '0 compareEnsembles',
      '0 useEnsemble true',
      '0 settleEnsemble true',
    ])
    expect(used).toEqual(['0 on trial', '0 in force', 'p99 forgotten'])
    expect(started).toEqual(['new of /models/new'])
    expect(await counted()).toEqual(['kept 1'])
  })

  it('is taken back before a camera has it when it agrees too little, on all engines together', async () => {
    const other = { ...same, matched: 14 }
    const { change, begin, is, asked, started, counted } = rig([
      () => undefined,
      ({ type }) => (type === 'compareEnsembles' ? other : undefined),
    ])
    await begin({ minAgreement: 0.85 })
    await is('steady')
    expect(change.view).toMatchObject({
      name: 'old',
      last: {
        outcome: 'taken_back',
        agreement: 0.825,
        comparedFrames: 20,
        reason:
          'agreement 0.825 on 20 frames: of 40 detections before and 40 after 33 are the same; minAgreement is 0.85',
        p99Ms: { before: null, after: null },
      },
    })
    expect(asked.filter((question) => question.includes('use'))).toEqual([])
    expect(asked.slice(-2)).toEqual(['0 settleEnsemble false', '1 settleEnsemble false'])
    expect(started).toEqual([])
    expect(await counted()).toEqual(['taken_back 1'])
  })

  it('is not judged by what cannot be measured, and says so', async () => {
    const nothing = { frames: 0, before: 0, after: 0, matched: 0, failure: '' }
    const { change, begin, is, endTrial } = rig([
      ({ type }) => (type === 'compareEnsembles' ? nothing : undefined),
    ])
    await begin()
    endTrial()
    await is('steady')
    expect(change.view.last).toMatchObject({
      outcome: 'kept',
      agreement: null,
      comparedFrames: 0,
      reason:
        'no frame could be compared, so that minAgreement does not apply; no camera was live before, so that maxP99Ratio does not apply',
    })
  })

  it('is taken back when it is slower', async () => {
    const { change, begin, is, endTrial, used, asked } = rig([() => undefined], { gate: 40 })
    await begin()
    await until('cameras on it', () => used.length === 1)
    change.published({ cameraId: 'gate', arrivedMs: nowMs() + 10_000 }, 90)
    endTrial()
    await is('steady')
    expect(change.view).toMatchObject({
      name: 'old',
      last: { outcome: 'taken_back', p99Ms: { before: 40, after: 90 } },
    })
    expect(asked.at(-1)).toBe('0 settleEnsemble false')
    expect(used).toEqual(['0 on trial', '0 in force', 'p99 forgotten'])
  })

  it('measures cameras with few results while it is compared', async () => {
    let compared: (answer: unknown) => void = () => undefined
    const comparing = new Promise((resolve) => (compared = resolve))
    const { change, begin, is, endTrial, used } = rig(
      [({ type }) => (type === 'compareEnsembles' ? comparing : undefined)],
      { gate: 40 },
    )
    await begin()
    await is('comparing')
    for (const cameraId of ['gate', 'new']) change.published({ cameraId, arrivedMs: nowMs() + 10_000 }, 70)
    compared(same)
    await until('cameras on it', () => used.length === 1)
    change.published({ cameraId: 'new', arrivedMs: nowMs() + 10_000 }, 72)
    endTrial()
    await is('steady')
    expect(change.view.last).toMatchObject({ outcome: 'kept', p99Ms: { before: 70, after: 72 } })
  })

  it('is refused when an engine cannot load it, and the others let it go', async () => {
    const { change, begin, is, asked, used } = rig([
      () => undefined,
      ({ type }) => (type === 'openEnsemble' ? Promise.reject(new Error('it has no labels')) : undefined),
    ])
    await begin()
    await is('steady')
    expect(change.view).toMatchObject({
      name: 'old',
      last: { outcome: 'refused', reason: 'it has no labels', agreement: null, comparedFrames: 0 },
    })
    expect(asked.slice(-2)).toEqual(['0 settleEnsemble false', '1 settleEnsemble false'])
    expect(used).toEqual(['0 in force', '1 in force'])
  })

  it.each([
    ['its comparison', 'compareEnsembles', 'comparing'],
    ['the trial', 'none', 'trial'],
  ])('is taken back when an engine ends in %s', async (_, hangs, state) => {
    const { change, engines, begin, is, asked, started } = rig([
      ({ type }) => (type === hangs ? never() : undefined),
    ])
    await begin()
    await is(state)
    engines[0]!.ready = false
    change.interrupt('engine 0 ended: SIGKILL')
    await is('steady')
    expect(change.view).toMatchObject({
      name: 'old',
      last: { outcome: 'taken_back', reason: 'engine 0 ended: SIGKILL' },
    })
    // It comes up with the one in force.
    expect(asked.at(-1)).not.toContain('settle')
    expect(started).toEqual([])
  })

  it('is taken back at once when its runs fail, also in the comparison', async () => {
    const { change, begin, is } = rig()
    await begin()
    await is('trial')
    change.interrupt('a run failed: no memory')
    await is('steady')
    expect(change.view.last).toMatchObject({ outcome: 'taken_back', reason: 'a run failed: no memory' })

    const failing = rig([
      ({ type }) =>
        type === 'compareEnsembles' ? { ...same, failure: 'a run failed: no memory' } : undefined,
    ])
    await failing.begin()
    await failing.is('steady')
    expect(failing.change.view.last).toMatchObject({
      outcome: 'taken_back',
      reason: 'a run failed: no memory',
      agreement: 0.95,
    })
  })

  it('is over though an engine does not settle it, which is logged', async () => {
    const { change, begin, is, endTrial, lines } = rig([
      ({ type }) =>
        type === 'settleEnsemble' ? Promise.reject(new EngineUnavailableError('no answer')) : undefined,
    ])
    await begin()
    endTrial()
    await is('steady')
    expect(change.view.name).toBe('new')
    expect(lines).toContainEqual(
      expect.objectContaining({ engine: 0, msg: 'engine does not settle a change of the ensemble' }),
    )
  })
})

describe('what changes nothing', () => {
  it('is a second change while one is under way', async () => {
    const { change, begin, is, endTrial } = rig()
    await begin()
    await expect(begin({}, 'third')).rejects.toMatchObject({ code: 'GANTRY_ENSEMBLE_BUSY' })
    expect(change.view.to?.name).toBe('new')
    endTrial()
    await is('steady')
    await begin({}, 'third')
    await is('steady')
    expect(change.view).toMatchObject({ name: 'third', last: { name: 'third' } })
  })

  it('is one of two that are asked for at the same moment', async () => {
    const { begin } = rig()
    const both = await Promise.allSettled([begin({}, 'one'), begin({}, 'two')])
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  })

  it('is an ensemble that the repositories do not have', async () => {
    const { change, begin, asked } = rig()
    await expect(begin({}, 'unknown')).rejects.toMatchObject({ code: 'GANTRY_MODEL_NOT_FOUND' })
    expect(change.view).toMatchObject({ state: 'steady', to: null, last: null })
    expect(asked).toEqual([])
  })

  it('is a change without engines, or with one that is not ready', async () => {
    await expect(rig([]).begin()).rejects.toMatchObject({ code: 'GANTRY_ENSEMBLE_BUSY' })
    const { begin, engines } = rig()
    engines[0]!.ready = false
    await expect(begin()).rejects.toThrow('engine 0 is not ready')
  })

  it('is the end of the service, which asks its engines for nothing more', async () => {
    const { change, begin, is, asked, counted } = rig()
    await begin()
    await is('trial')
    change.stop()
    await expect(begin()).rejects.toMatchObject({ code: 'GANTRY_ENSEMBLE_BUSY' })
    expect(asked.at(-1)).toBe('0 useEnsemble true')
    expect(await counted()).toEqual([])
  })
})
