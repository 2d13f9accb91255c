import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import type { GpuFigures } from '../../../src/metrics/gpu-metrics.js'
import { DecoderBudget } from '../../../src/processes/control/decoder-budget.js'
import { firstDecoderBytes } from '../../../src/processes/control/decoder-cost.js'
import { recordingLog } from '../../support/silent-log.js'

const gib = 1024 ** 3

function gpu(index: number, totalGiB: number | null, usedGiB: number | null): GpuFigures {
  const bytes = (value: number | null) => (value === null ? null : value * gib)
  return {
    index,
    uuid: `GPU-0000000${index}`,
    name: 'NVIDIA T4',
    utilization: 0,
    memoryTotalBytes: bytes(totalGiB),
    memoryUsedBytes: bytes(usedGiB),
    powerWatts: null,
    powerLimitWatts: null,
    energyJoules: null,
    reason: '',
  }
}

function budgetOf(share: number, ...cards: readonly GpuFigures[]) {
  const { log, lines } = recordingLog()
  const metrics = createServiceMetrics()
  const state = { gpus: cards, nowMs: 0, reading: Promise.resolve() }
  const told: string[] = []
  const budget = new DecoderBudget({
    share,
    gpus: {
      get gpus() {
        return state.gpus
      },
      readingAfter: () => state.reading,
    },
    isLive: () => true,
    metrics,
    log,
    intervalMs: 2_000,
    clock: () => state.nowMs,
    hasRoom: ({ cameraId }) => told.push(cameraId),
  })
  /** Looks once a second. */
  const looks = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      state.nowMs += 1_000
      budget.look()
    }
    return told.splice(0)
  }
  const ask = (cameraId: string, device = 0, engine = device) => budget.ask({ engine, cameraId, device })
  return { budget, state, lines, metrics, ask, looks }
}

describe('the memory of a card that decoders take', () => {
  it('is a share of it: the camera beyond it hears why, and has room when another leaves', async () => {
    // 4 GiB are 7 times 560 MiB.
    const { ask, budget } = budgetOf(0.25, gpu(0, 16, 1))
    for (let at = 1; at <= 7; at += 1) expect(await ask(`cam-${at}`)).toEqual({ device: 0, isSeen: true })
    expect(await ask('cam-8')).toEqual({
      device: 0,
      isSeen: true,
      refusal: 'decoders may take 4.0 GiB of GPU 0 (decoding.gpuMemoryShare), and 7 of 560 MiB are there',
    })
    expect(await ask('cam-3')).toEqual({ device: 0, isSeen: true })
    budget.left({ engine: 0, cameraId: 'cam-3' })
    expect(await ask('cam-8')).not.toHaveProperty('refusal')
  })

  it('is told to those that were refused once there is some, one after another', async () => {
    // 0.15 of 16 GiB are 4 times 560 MiB.
    const { ask, budget, looks } = budgetOf(0.15, gpu(0, 16, 1))
    const leave = (cameraId: string) => budget.left({ engine: 0, cameraId })
    for (const camera of ['a', 'b', 'c', 'd', 'x', 'y']) await ask(camera)
    expect(looks(100)).toEqual([])
    for (const camera of ['a', 'b']) leave(camera)
    // The next is told when the first has asked.
    expect(looks(9)).toEqual(['x'])
    leave('x')
    expect(await ask('x')).not.toHaveProperty('refusal')
    expect(looks(9)).toEqual(['y'])
    leave('y')
    expect(await ask('y')).not.toHaveProperty('refusal')
    expect(looks(100)).toEqual([])
  })

  it('is told to a decoder once a minute at most, and to none that has gone', async () => {
    const { ask, budget, looks, state } = budgetOf(1, gpu(0, 16, 15.2))
    for (const camera of ['x', 'y']) expect(await ask(camera)).toHaveProperty('refusal')
    // Somebody else left the card; what is told does not come.
    state.gpus = [gpu(0, 16, 1)]
    expect(looks(120)).toEqual(['x', 'y', 'x', 'y'])
    budget.left({ engine: 0, cameraId: 'x' })
    expect(looks(60)).toEqual(['y'])
    budget.engineGone(0)
    expect(looks(120)).toEqual([])
  })

  it('is told to none where the share is 0, or before the models of an engine are in the figures', async () => {
    const none = budgetOf(0, gpu(0, 16, 1))
    await none.ask('a')
    expect(none.looks(30)).toEqual([])
    const { ask, budget, looks, state } = budgetOf(1, gpu(0, 16, 15.2))
    await ask('a')
    state.gpus = [gpu(0, 16, 1)]
    budget.engineReady()
    expect(looks(13)).toEqual([])
    expect(looks(1)).toEqual(['a'])
  })

  it('is never more than is free, with what those take that were just let in', async () => {
    const { ask } = budgetOf(1, gpu(0, 10, 8))
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((camera) => ask(camera)))
    expect(answers.map(({ refusal }) => refusal)).toEqual([
      undefined,
      undefined,
      'GPU 0 has 0.9 of 10.0 GiB left, and a decoder takes 560 MiB',
      'GPU 0 has 0.9 of 10.0 GiB left, and a decoder takes 560 MiB',
    ])
  })

  it('is that of the card that each engine is on', async () => {
    const { ask, budget } = budgetOf(0.1, gpu(0, 16, 1), gpu(1, 16, 1))
    expect(await Promise.all([ask('a', 0), ask('b', 0), ask('c', 0)])).toMatchObject([
      { device: 0 },
      { device: 0 },
      { refusal: expect.stringContaining('GPU 0') as string },
    ])
    expect(await ask('c', 1)).toEqual({ device: 1, isSeen: true })
    budget.engineGone(0)
    expect(await ask('d', 0)).not.toHaveProperty('refusal')
  })

  it('is none at all where the share is 0', async () => {
    const { ask } = budgetOf(0, gpu(0, 16, 1))
    expect(await ask('a')).toMatchObject({ refusal: 'decoding.gpuMemoryShare is 0' })
  })

  it('is not bounded where nothing tells of it, which is said once where there is a card', async () => {
    const { ask, lines } = budgetOf(0.01, gpu(0, null, null))
    expect(await ask('a')).toEqual({ device: 0, isSeen: true })
    expect(await ask('b')).toEqual({ device: 0, isSeen: true })
    expect(lines.map(({ msg }) => msg)).toEqual([
      'the memory of the GPU is not told: decoders on it are not bounded',
    ])
    // Of cards that differ nobody knows which CUDA means.
    const differing = budgetOf(0.01, gpu(0, 16, 1), { ...gpu(1, 16, 1), name: 'NVIDIA L4' })
    expect(await differing.ask('a')).toEqual({ device: 0, isSeen: true })
    expect(differing.lines).toHaveLength(1)
    const none = budgetOf(0.01)
    expect(await none.ask('a')).toEqual({ device: 0, isSeen: false })
    expect(none.lines).toEqual([])
  })

  it('is the share that was known while nothing tells what is in use', async () => {
    const { ask, state } = budgetOf(0.1, gpu(0, 16, 1))
    expect(await ask('a')).toEqual({ device: 0, isSeen: true })
    state.gpus = [gpu(0, null, null)]
    expect(await ask('b')).toEqual({ device: 0, isSeen: true })
    expect((await ask('c')).refusal).toContain('decoders may take 1.6 GiB of GPU 0')
  })

  it('is read after the models of an engine were loaded, and not taken by a decoder that ended meanwhile', async () => {
    const { ask, budget, state } = budgetOf(0.25, gpu(0, 16, 1))
    budget.engineReady()
    let read: () => void = () => undefined
    state.reading = new Promise((resolve) => (read = resolve))
    const asked = ask('a')
    const leaves = ask('b')
    budget.left({ engine: 0, cameraId: 'b' })
    state.gpus = [gpu(0, 16, 15)]
    read()
    expect((await asked).refusal).toContain('GPU 0 has 1.0 of 16.0 GiB left')
    expect((await leaves).refusal).toBeDefined()
  })

  it('is in the metrics', async () => {
    const { ask, budget, metrics } = budgetOf(0.25, gpu(0, 16, 1))
    await ask('a')
    await ask('b')
    budget.measure()
    const page = await metrics.registry.metrics()
    expect(page).toContain('gantry_decoders_on_gpu{device="0"} 2')
    expect(page).toContain(`gantry_decoder_gpu_memory_bytes{device="0"} ${2 * firstDecoderBytes}`)
    expect(page).toContain(`gantry_decoder_gpu_memory_limit_bytes{device="0"} ${4 * gib}`)
  })

  it('is kept within its share and the card, whatever comes and goes', async () => {
    const step = fc.record({
      cameraId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
      comes: fc.boolean(),
      passMs: fc.integer({ min: 0, max: 20_000 }),
    })
    const setting = fc.record({
      share: fc.double({ min: 0.01, max: 1, noNaN: true }),
      totalGiB: fc.integer({ min: 1, max: 80 }),
      others: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    await fc.assert(
      fc.asyncProperty(setting, fc.array(step, { maxLength: 40 }), async (given, steps) => {
        const { share, totalGiB, others } = given
        const { ask, budget, state } = budgetOf(share, gpu(0, totalGiB, others * totalGiB))
        const held = new Set<string>()
        for (const { cameraId, comes, passMs } of steps) {
          state.nowMs += passMs
          // What the card says of all that are on it, before this one.
          if (passMs > 15_000)
            state.gpus = [
              gpu(0, totalGiB, Math.min(totalGiB, others * totalGiB + (held.size * firstDecoderBytes) / gib)),
            ]
          if (!comes) {
            budget.left({ engine: 0, cameraId })
            held.delete(cameraId)
          } else if ((await ask(cameraId)).refusal === undefined) {
            held.add(cameraId)
            expect(held.size * firstDecoderBytes).toBeLessThanOrEqual(share * totalGiB * gib)
          } else held.delete(cameraId)
        }
      }),
    )
  })
})
