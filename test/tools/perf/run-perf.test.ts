import { setTimeout as pause } from 'node:timers/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished, describe, expect, it } from 'vitest'
import { ServingError } from '../../../src/tensors/serving-error.js'
import { latencyText, readReport } from '../../../src/tools/perf/perf-report.js'
import { perfPage } from '../../../src/tools/perf/perf-page.js'
import { writeReportFile } from '../../../src/tools/report/report-file.js'
import { runPerf } from '../../../src/tools/perf/run-perf.js'
import { freePort } from '../../support/free-port.js'
import { quickPerf, unheard } from '../../support/perf-options.js'
import { servedModels } from '../../support/served-models.js'
import { tempDir } from '../../support/temp-dir.js'

const models = {
  plain: { datatype: 'FP32', shape: [-1, 4] },
  open: { datatype: 'FP32', shape: [-1, -1] },
  texts: { datatype: 'BYTES', shape: [-1, 2] },
} as const
const never = new AbortController().signal
const levels = (first: number, last = first, step = 1) =>
  ({ kind: 'concurrency', range: { first, last, step } }) as const
const rate = (perSecond: number, mostUnderWay = 64) =>
  ({
    kind: 'rate',
    range: { first: perSecond, last: perSecond, step: 1 },
    distribution: 'constant',
    mostUnderWay,
  }) as const

describe.each(['http', 'grpc'] as const)('a run over %s', (way) => {
  it('measures level by level, in windows that agree, with the split of the server', async () => {
    const served = await servedModels(models)
    let most = 0
    let underWay = 0
    served.server.onInfer = async ({ inputs }) => {
      most = Math.max(most, ++underWay)
      await pause(5)
      underWay -= 1
      return inputs.map((input) => ({ ...input, name: 'OUT' }))
    }
    const seen: number[] = []
    const report = await runPerf(quickPerf(served[way], { load: levels(1, 3, 2), batchSize: 2 }), never, {
      ...unheard,
      level: ({ level }) => seen.push(level),
    })
    expect(seen).toEqual([1, 3])
    // One that was cut off at the end of the level before may still be in the server.
    expect([3, 4]).toContain(most)
    expect(report).toMatchObject({
      gantryPerf: 1,
      model: 'plain',
      protocol: way,
      batchSize: 2,
      interrupted: false,
    })
    expect(report.inputs).toEqual([{ name: 'IN', datatype: 'FP32', shape: [2, 4] }])
    for (const {
      level,
      latencyUs,
      splitUs,
      requests,
      errors,
      seconds,
      inferencesPerSecond,
    } of report.levels) {
      expect(errors).toBe(0)
      expect(latencyUs.p50).toBeGreaterThanOrEqual(4_500)
      expect(latencyUs.p99).toBeGreaterThanOrEqual(latencyUs.p50)
      expect(inferencesPerSecond).toBeCloseTo((requests / seconds) * 2, 0)
      // So many are under way that each takes its time.
      expect((inferencesPerSecond / 2) * latencyUs.mean).toBeLessThan(level * 1.2e6)
      const parts = [splitUs.clientWait, splitUs.clientSend, splitUs.network, splitUs.clientReceive]
      const all = [...parts, ...Object.values(splitUs.server ?? {})]
      expect(all.reduce((sum, part) => sum + part, 0)).toBeCloseTo(latencyUs.mean, 0)
      // The statistics of the server count 1 us of each for a request.
      expect(splitUs.server?.computeInfer).toBeCloseTo(1, 1)
    }
  })
})

it('charges a server that stands still for every request that would have come meanwhile', async () => {
  const served = await servedModels(models)
  let calls = 0
  served.server.onInfer = async ({ inputs }) => {
    await pause((calls += 1) === 5 ? 400 : 1)
    return inputs
  }
  const options = quickPerf(served.http, { load: rate(100, 1), windowMs: 1_200, mostWindows: 1 })
  const { levels: result, load, notes } = await runPerf(options, never, unheard)
  const [{ latencyUs, lagUs, requests, splitUs }] = result as [(typeof result)[0]]
  // One request took 400 ms; those that were due while it did waited from 390 ms down to nothing.
  expect(latencyUs.max).toBeGreaterThan(350_000)
  expect(latencyUs.p90).toBeGreaterThan(100_000)
  expect(lagUs?.max).toBeGreaterThan(300_000)
  expect(splitUs.clientWait).toBeGreaterThan(10_000)
  expect(requests).toBeGreaterThan(5)
  expect(notes.join()).toContain('does not keep up with the rate')
  expect(latencyText(load)).toContain('coordinated omission')
})

it('sends a rate that the server keeps up with at its times', async () => {
  const served = await servedModels(models)
  const options = quickPerf(served.http, { load: rate(50), windowMs: 1_000, mostWindows: 1 })
  const [result] = (await runPerf(options, never, unheard)).levels
  expect(result?.requests).toBeGreaterThan(25)
  expect(result?.requests).toBeLessThan(75)
})

describe('a limit of latency', () => {
  /** Takes 10 ms for each request that is under way. */
  async function slowing() {
    const served = await servedModels(models)
    let underWay = 0
    served.server.onInfer = async ({ inputs }) => {
      await pause(++underWay * 20)
      underWay -= 1
      return inputs
    }
    return quickPerf(served.http, { windowMs: 400, mostWindows: 1, quantile: 0.5, limitMs: 90 })
  }

  it('ends at the first level that is slower', async () => {
    const report = await runPerf({ ...(await slowing()), load: levels(1, 32, 3) }, never, unheard)
    const kept = report.levels.filter(({ latencyUs }) => latencyUs.p50 <= 90_000)
    expect(report.levels).toHaveLength(kept.length + 1)
    expect(report.limit).toEqual({ limitMs: 90, of: 'p50', highest: kept.at(-1)?.level })
  })

  it('is found by halves', async () => {
    const report = await runPerf(
      { ...(await slowing()), load: levels(1, 32), byHalves: true },
      never,
      unheard,
    )
    expect(report.levels.length).toBeLessThan(9)
    const all = report.levels.map(({ level }) => level)
    expect(all).toEqual([...all].sort((a, b) => a - b))
    expect(report.limit?.highest).toBeGreaterThanOrEqual(1)
    expect(report.limit?.highest).toBeLessThanOrEqual(6)
  })
})

describe('what keeps a run from beginning', () => {
  it('is a server that is not there', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    await expect(runPerf(quickPerf(url), never, unheard)).rejects.toMatchObject({
      code: 'GANTRY_SERVER_UNREACHABLE',
      message: expect.stringContaining(url) as string,
    })
  })

  it.each([
    [
      'a model that is not there',
      { model: { name: 'nothing' } },
      'GANTRY_MODEL_NOT_FOUND',
      'no model "nothing"',
    ],
    [
      'a version that is not there',
      { model: { name: 'plain', version: '7' } },
      'GANTRY_MODEL_NOT_FOUND',
      'version 7',
    ],
    ['no model', { model: undefined }, 'GANTRY_USAGE', 'no model was named'],
    ['free sizes', { model: { name: 'open' } }, 'GANTRY_USAGE', 'free sizes are not known'],
    ['too large a batch', { batchSize: 9 }, 'GANTRY_USAGE', 'takes at most 8'],
    ['data that is not there', { inputData: '/nowhere' }, 'GANTRY_USAGE', 'there is no such file'],
    [
      'pictures for a model that takes none',
      { inputData: import.meta.dirname },
      'GANTRY_USAGE',
      'no input for pictures',
    ],
  ])('is %s', async (_, more, code, message) => {
    const served = await servedModels(models)
    await expect(runPerf(quickPerf(served.http, more), never, unheard)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message) as string,
    })
  })

  it('is a model that is not ready', async () => {
    const served = await servedModels(models)
    served.server.modelReady = () => false
    await expect(runPerf(quickPerf(served.http), never, unheard)).rejects.toMatchObject({
      message: expect.stringContaining('"plain" is not ready') as string,
    })
  })
})

describe('what goes wrong in the middle', () => {
  it('R50: a server that stops ends the run, with what was measured', async () => {
    const served = await servedModels(models)
    const report = await runPerf(quickPerf(served.http, { load: levels(1, 9) }), never, {
      ...unheard,
      level: ({ level }) => level === 2 && void served.stop(),
    })
    expect(report.fault).toMatchObject({ code: 'GANTRY_SERVER_UNREACHABLE' })
    const all = report.levels.map(({ level }) => level)
    expect(all.slice(0, 2)).toEqual([1, 2])
    expect(all.length).toBeLessThan(4)
    expect(report.levels[0]).toMatchObject({ cutShort: false, errors: 0 })
  })

  it('counts requests that are refused, and says why', async () => {
    const served = await servedModels(models)
    let calls = 0
    served.server.onInfer = ({ inputs }) =>
      (calls += 1) % 5 === 0
        ? Promise.reject(new ServingError('UNAVAILABLE', 'queue is full'))
        : Promise.resolve(inputs)
    const {
      levels: [result],
      notes,
      fault,
    } = await runPerf(quickPerf(served.http), never, unheard)
    expect(result?.errors).toBeGreaterThan(0)
    expect(result?.firstError).toContain('queue is full')
    expect(notes.join()).toContain('queue is full')
    expect(fault).toBeUndefined()
  })

  it('ends when every request of a window is refused', async () => {
    const served = await servedModels(models)
    served.server.onInfer = () => Promise.reject(new ServingError('INTERNAL', 'it is broken'))
    const { levels: none, fault } = await runPerf(
      quickPerf(served.http, { load: levels(1, 9) }),
      never,
      unheard,
    )
    expect(none).toEqual([])
    expect(fault).toMatchObject({
      code: 'GANTRY_MODEL_SERVER',
      message: expect.stringContaining('it is broken') as string,
    })
  })

  it('ends when a server stands still for windows, with what was measured until then', async () => {
    const served = await servedModels(models)
    let calls = 0
    served.server.onInfer = ({ inputs }) =>
      (calls += 1) < 20 ? Promise.resolve(inputs) : new Promise(() => undefined)
    const options = quickPerf(served.http, { within: 1e-9, mostWindows: 99, load: levels(1, 9) })
    const report = await runPerf(options, never, unheard)
    expect(report.levels).toMatchObject([{ level: 1, requests: 19, cutShort: true }])
    expect(report.fault).toMatchObject({ message: expect.stringContaining('1 under way') as string })
  })

  it('ends when nothing is answered', async () => {
    const served = await servedModels(models)
    served.server.onInfer = () => new Promise(() => undefined)
    const { fault } = await runPerf(quickPerf(served.http), never, unheard)
    expect(fault).toMatchObject({ hint: expect.stringContaining('--window-ms') as string })
  })

  it('R50: a signal ends it with what there is', async () => {
    const served = await servedModels(models)
    const stop = new AbortController()
    const report = await runPerf(
      quickPerf(served.http, { load: levels(1, 9), windowMs: 200, within: 1e-9, mostWindows: 99 }),
      stop.signal,
      {
        ...unheard,
        window: (_, { windows }) => windows === 2 && stop.abort(),
      },
    )
    expect(report).toMatchObject({ interrupted: true, levels: [{ level: 1, cutShort: true }] })
    expect(report.fault).toBeUndefined()
  })
})

it('works with a server that has no extension, and says that its part is not known', async () => {
  const server = createServer((request, response) => {
    const answers: Readonly<Record<string, unknown>> = {
      '/v2': { name: 'other', version: '1' },
      '/v2/models/m': { name: 'm', inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 2] }], outputs: [] },
      '/v2/models/m/ready': {},
      '/v2/models/m/infer': { outputs: [] },
    }
    const answer = answers[request.url ?? '']
    request
      .resume()
      .once('end', () => response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? {})))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const report = await runPerf(quickPerf(url, { model: { name: 'm' }, batchSize: 2 }), never, unheard)
  expect(report.levels[0]?.requests).toBeGreaterThan(0)
  expect(report.levels[0]?.splitUs.server).toBeUndefined()
  expect(report.inputs).toEqual([{ name: 'IN', datatype: 'FP32', shape: [2, 2] }])
  expect(perfPage(report)).toContain('This server has no statistics')
})

it('makes a report that can be saved, shown and read again', async () => {
  const served = await servedModels(models)
  const report = await runPerf(quickPerf(served.http, { load: levels(1, 2) }), never, unheard)
  const path = `${tempDir()}/report.json`
  writeReportFile(path, JSON.stringify(report))
  expect(readReport(path)).toMatchObject(JSON.parse(JSON.stringify(report)) as object)
  const page = perfPage(report)
  expect(page.match(/<svg/g)).toHaveLength(2)
  expect(page).not.toMatch(/NaN|undefined|\[object/)
  expect(page).toContain('Latency is from when a request is sent')
})
