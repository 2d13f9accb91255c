import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { GpuWatch, type GpuWatchSettings } from '../../../src/processes/control/gpu-watch.js'
import { FakeNvidiaSmi, h100 } from '../../support/fake-nvidia-smi.js'
import { alive } from '../../support/processes.js'
import { recordingLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

const retry = { baseMs: 20, capMs: 40 }

/** A watch of what a program says, which has gone when the test is over. */
function watching(says: string, settings: Partial<GpuWatchSettings> = {}, isStubborn = false) {
  const smi = new FakeNvidiaSmi(tempDir(), says)
  smi.stubborn(isStubborn)
  vi.stubEnv('PATH', smi.path)
  onTestFinished(() => void vi.unstubAllEnvs())
  const { log, lines } = recordingLog()
  const watch = new GpuWatch({ intervalMs: 50, retry, ...settings }, log)
  onTestFinished(() => watch.stop())
  watch.start()
  return { smi, watch, lines }
}

const first = (watch: GpuWatch) => until('a reading', () => watch.gpus[0])

/** Those of the test that runs: other tests may have their own. */
const ours = (smi: FakeNvidiaSmi) => smi.runs.filter(({ pid }) => alive(pid))

describe('the figures of the GPU', () => {
  it('come from one program that stays, and cost no more by being asked for', async () => {
    const { smi, watch } = watching(h100.row)
    expect(await first(watch)).toMatchObject({
      index: 0,
      uuid: h100.uuid,
      name: 'NVIDIA H100 80GB HBM3',
      utilization: 0.45,
      reason: '',
    })
    smi.says(h100.row.replace(', 45,', ', 100,'))
    await until('the next reading', () => watch.gpus[0]?.utilization === 1)
    const asked = Array.from({ length: 1_000 }, () => watch.gpus.length)
    expect(new Set(asked)).toEqual(new Set([1]))
    expect(smi.runs).toHaveLength(1)
    expect(smi.runs[0]?.args).toContain('--loop-ms=50')
    expect(ours(smi)).toHaveLength(1)
  })

  it('are those of every card, as the driver counts them', async () => {
    const second = h100.row.replace('0, GPU-5', '1, GPU-6')
    const { watch } = watching(`${second}\n${h100.row}`)
    await until('two cards', () => watch.gpus.length === 2)
    expect(watch.gpus.map(({ index }) => index)).toEqual([0, 1])
  })

  it('are waited for by whoever must not go by older ones, and by nobody where there are none', async () => {
    const { smi, watch } = watching(h100.row)
    await first(watch)
    smi.says(h100.row.replace(', 1207,', ', 2000,'))
    const used = () => (watch.gpus[0]?.memoryUsedBytes ?? 0) / 1024 ** 2
    await until('it is told', async () => {
      await watch.readingAfter(nowMs())
      return used() === 2_000
    })
    await watch.readingAfter(0)
    await watch.stop()
    await watch.readingAfter(nowMs() + 60_000)
    vi.stubEnv('PATH', tempDir())
    const none = new GpuWatch({ intervalMs: 50 }, recordingLog().log)
    none.start()
    await none.readingAfter(nowMs())
  })

  it('count the energy by the power', async () => {
    const beganMs = performance.now()
    const { watch } = watching(h100.row.replace('318.42', '1000.00'))
    // A kilowatt is a joule each millisecond.
    await until('energy', () => (watch.gpus[0]?.energyJoules ?? 0) > 100)
    expect(watch.gpus[0]?.energyJoules).toBeLessThanOrEqual(performance.now() - beganMs)
  })

  it('have no energy where the card does not tell its power', async () => {
    const { watch } = watching(h100.row.replace('318.42', '[N/A]'))
    await first(watch)
    expect(watch.gpus[0]).toMatchObject({ powerWatts: null, energyJoules: null, reason: '' })
  })
})

describe('R43: a program or a card in trouble', () => {
  it('R43: runs nothing where there is no nvidia-smi, or where it is switched off', async () => {
    vi.stubEnv('PATH', tempDir())
    onTestFinished(() => void vi.unstubAllEnvs())
    const { log, lines } = recordingLog()
    const watch = new GpuWatch({ intervalMs: 20 }, log)
    watch.start()
    expect([watch.gpus, lines]).toEqual([[], []])
    await watch.stop()
    const off = watching(h100.row, { intervalMs: 0 })
    expect([off.watch.gpus, off.smi.runs, off.lines]).toEqual([[], [], []])
  })

  it('R43: tries ever more rarely where there is no card, and says so once', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const random = vi.spyOn(Math, 'random').mockReturnValue(1)
    onTestFinished(() => [timers, random].forEach((spy) => spy.mockRestore()))
    const { smi, watch, lines } = watching('No devices were found\nexit 6', {
      retry: { baseMs: 5, capMs: 30 },
    })
    await until('five runs', () => smi.runs.length >= 5)
    const waits = timers.mock.calls.map(([, forMs]) => forMs ?? 0).filter((forMs) => forMs <= 30)
    expect(waits.slice(0, 4)).toEqual([5, 10, 20, 30])
    expect(watch.gpus).toEqual([])
    expect(lines.map(({ level, msg, reason }) => [level, msg, reason])).toEqual([
      [30, 'nvidia-smi tells of no GPU', 'No devices were found'],
    ])
  })

  it('R43: ends one that says nothing, and starts no second one beside it', async () => {
    const { smi, watch, lines } = watching(h100.row, { silentAtMostMs: 300 }, true)
    await first(watch)
    smi.says('')
    await until('silence', () => watch.gpus[0]?.reason === 'nvidia-smi does not answer')
    expect(watch.gpus[0]).toMatchObject({ utilization: null, memoryUsedBytes: null, powerWatts: null })
    let most = 0
    await until('a second run', () => {
      most = Math.max(most, ours(smi).length)
      return smi.runs.length === 2
    })
    expect(most).toBe(1)
    smi.says(h100.row)
    await until('readings again', () => watch.gpus[0]?.utilization === 0.45)
    expect(lines.filter(({ msg }) => /missing|again/.test(String(msg)))).toMatchObject([
      { level: 40, msg: 'figures of the GPU are missing', reason: 'nvidia-smi does not answer' },
      { level: 30, msg: 'figures of the GPU are there again' },
    ])
  })

  it('R43: ends one that never says anything', async () => {
    const { smi, watch } = watching('', { startAtMostMs: 400 })
    await until('a second run', () => smi.runs.length >= 2)
    expect(watch.gpus).toEqual([])
  })

  it.each([
    ['garbage', '\u0000\ufffd, [[[\n{"a": 1}'],
    ['what looks like a card and is none', '1, 2, 3, 4, 5, 6, 7, 8'],
    ['another question', 'index, uuid, utilization.gpu [%], memory.total [MiB], a, b, c, name'],
  ])('R43: takes %s for silence', async (_, says) => {
    const { smi, watch } = watching(says, { startAtMostMs: 400 })
    await until('a second run', () => smi.runs.length >= 2)
    expect(watch.gpus).toEqual([])
  })

  it('R43: ends one that floods it', async () => {
    const { smi, watch, lines } = watching('flood', {
      retry: { baseMs: 100_000, capMs: 100_000 },
    })
    await until('its end', () => lines.length > 0 && ours(smi).length === 0)
    expect(lines[0]).toMatchObject({ reason: 'nvidia-smi writes more than it has to say' })
    expect([smi.runs.length, watch.gpus]).toEqual([1, []])
  })

  it('R43: makes up no cards of a program that does', async () => {
    const many = Array.from({ length: 200 }, (_, index) =>
      h100.row.replace('0, GPU-5e3a1f0c', `${index}, GPU-${String(index).padStart(8, '0')}`),
    )
    const { watch } = watching(many.join('\n'))
    await until('cards', () => watch.gpus.length === 64)
    expect(watch.gpus).toHaveLength(64)
  })

  it('R43: says that a card was lost, without figures, and goes on with the others', async () => {
    const second = h100.row.replace('0, GPU-5', '1, GPU-6')
    const { smi, watch, lines } = watching(`${h100.row}\n${second}`)
    await until('two cards', () => watch.gpus.length === 2)
    const lost = Array(7).fill('[GPU is lost]').join(', ')
    smi.says(`0, ${lost}\n${second}`)
    await until('the loss', () => watch.gpus[0]?.reason === 'GPU is lost')
    expect(watch.gpus[0]).toMatchObject({
      uuid: h100.uuid,
      name: 'NVIDIA H100 80GB HBM3',
      utilization: null,
      memoryTotalBytes: null,
    })
    expect(watch.gpus[1]).toMatchObject({ utilization: 0.45, reason: '' })
    expect(smi.runs).toHaveLength(1)
    expect(lines.filter(({ level }) => level === 40)).toMatchObject([
      { msg: 'a GPU is in trouble', gpu: 0, reason: 'GPU is lost' },
    ])
  })

  it('R43: says so of a card that is not listed any more', async () => {
    const second = h100.row.replace('0, GPU-5', '1, GPU-6')
    const { smi, watch } = watching(`${h100.row}\n${second}`, { silentAtMostMs: 500 })
    await until('two cards', () => watch.gpus.length === 2)
    smi.says(second)
    await until('that it is missing', () => watch.gpus[0]?.reason === 'nvidia-smi does not list it any more')
    expect(watch.gpus[0]?.utilization).toBeNull()
  })

  it('R43: goes on where it was after the driver was loaded anew', async () => {
    const { smi, watch } = watching(h100.row)
    await until('energy', () => (watch.gpus[0]?.energyJoules ?? 0) > 0)
    smi.says(
      'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\nexit 18',
    )
    await until('its end', () => watch.gpus[0]?.reason !== '')
    expect(watch.gpus[0]?.reason).toBe('Failed to initialize NVML: Driver/library version mismatch')
    const before = watch.gpus[0]?.energyJoules ?? 0
    smi.says(h100.row)
    await until('readings', () => watch.gpus[0]?.reason === '')
    expect(watch.gpus[0]?.energyJoules).toBeGreaterThanOrEqual(before)
  })

  it('R43: leaves no process behind when it is stopped, also one that does not want to end', async () => {
    const { smi, watch } = watching(h100.row, {}, true)
    await first(watch)
    // It would end by itself as soon as it writes to nobody.
    smi.says('')
    const beganMs = performance.now()
    await watch.stop()
    await watch.stop()
    expect(performance.now() - beganMs).toBeLessThan(3_000)
    expect(ours(smi)).toEqual([])
  })
})
