/**
 * What traces cost. `npx tsx test/bench/tracing-cost.bench.ts step|http|grpc|cameras [pairs] [seconds]`
 *
 * - `step`: processor time of the code alone, at sampling 0.01 and 1: of a frame from its result to its last sink, of a request of a model of
 *   one step, with sending; and of what is done where nothing is sampled.
 * - `http`, `grpc`: two services for each pair, one that traces 1 % and one without `tracing`, have turns of half a second under one client
 *   that asks for a run of microseconds, so many seconds each. CPU of a request, and its p99, traced over not.
 * - `cameras`: the same of frames, 4 cameras of 5 frames/s by RTSP, in turns of so many seconds; those of the service that does not have
 *   its turn are switched off.
 *
 * What collects is a process of its own, which is not counted. `npm run build:server` first.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tracingSchema } from '../../src/config/tracing.js'
import { queuedRecord } from '../../src/delivery/outbox-queue.js'
import { nowMs, wallMs } from '../../src/lifecycle/clock.js'
import { eventTypes } from '../../src/messages/cloud-event.js'
import { closedDetectionsJson } from '../../src/messages/detections-json.js'
import { FrameTraces } from '../../src/processes/control/frame-traces.js'
import { RequestSpans } from '../../src/runtime/tracing/request-spans.js'
import { traced } from '../../src/runtime/tracing/request-trace.js'
import { Tracer } from '../../src/runtime/tracing/tracer.js'
import { openTracing } from '../../src/tracing/open-tracing.js'
import { emptyFrameCounts } from '../../src/vision/accounting.js'
import { treeCpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { freePort } from '../support/free-port.js'
import { silentLog } from '../support/silent-log.js'
import { until } from '../support/until.js'
import { medianOf, report } from './bench.js'
import { tinyInputs, tinyRepository } from './tiny-model.js'

const [question = 'step', pairsText = '11', secondsText = '10'] = process.argv.slice(2)
const [pairs, roundMs] = [Number(pairsText), Number(secondsText) * 1_000]
const root = fileURLToPath(new URL('../..', import.meta.url))
const [cameras, fps] = [4, 5]
const warmSeconds = 20

/** Takes whatever it is sent. */
async function collector() {
  const code = `require('node:http').createServer((q, r) => q.resume().on('end', () => r.end())).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${Number(String(line))}`, stop: () => child.kill() }
}

/**
 * Processor time of one, in microseconds; the best of several rounds, as anything else only adds.
 *
 * @param send - all spans that there are; called so often that none is lost.
 */
async function costUs(sampling: number, one: (index: number) => unknown, send: () => Promise<unknown>) {
  const [times, sendEvery] = sampling === 1 ? [5_000, 100] : [50_000, 10_000]
  const rounds: number[] = []
  for (let round = 0; round < pairs; round += 1) {
    const before = process.cpuUsage()
    for (let index = 0; index < times; index += 1) {
      await one(index)
      if (index % sendEvery === sendEvery - 1) await send()
    }
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / times)
  }
  return { us: Math.min(...rounds), median: medianOf(rounds).median }
}

async function steps(endpoint: string): Promise<void> {
  const text = Buffer.from(`{"detections":[${'{"label":"helmet"},'.repeat(60)}{}],"timingsMs":{"queue":1`)
  const result = (seq: number) => ({
    cameraId: 'cam',
    seq,
    capturedAtMs: wallMs(),
    arrivedMs: nowMs(),
    source: { widthPx: 1, heightPx: 1 },
    model: 'ppe',
    run: { timingsMs: { queue: 1, infer: 10, postprocess: 1 }, batchSize: 1 },
    labels: [['helmet', 60]] as const,
    decodeGapsMs: [200],
    counts: emptyFrameCounts(),
    text,
  })
  for (const sampling of [undefined, 0, 0.01, 1]) {
    const config = tracingSchema.parse(sampling === undefined ? {} : { endpoint, sampling })
    const who = { process: 'control', pipeline: 'bench', version: '1' } as const
    const tracing = await openTracing(config, who, silentLog())
    const flush = () => tracing?.flush(10_000) ?? Promise.resolve()
    const traces = tracing && new FrameTraces(tracing)
    const frame = await costUs(
      sampling ?? 0,
      (seq) => {
        const frameResult = result(seq)
        const trace = traces?.begin(frameResult, 12)
        const value = closedDetectionsJson(text, 12, { traceparent: trace?.traceparent })
        const stored = { id: `r${seq}`, type: eventTypes.detections, cameraId: 'cam', seq, timeMs: 1, value }
        const record = queuedRecord({ ...stored, position: seq }, true, nowMs())
        trace?.committed(true)
        if (trace) traces?.publish(record.id, trace, ['kafka'])
        traces?.settled('kafka', record, 'delivered')
      },
      flush,
    )
    const tracer = new Tracer(undefined, tracing && new RequestSpans(tracing))
    const request = await costUs(
      sampling ?? 0,
      async () => {
        const arrival = { protocol: 'HTTP', startedMs: nowMs(), endedMs: nowMs() } as const
        const begun = tracer.begin('tiny', '1', '', arrival)
        if (begun === undefined) return
        const { trace } = begun
        await traced(trace, async () => {
          for (const name of ['QUEUE_START', 'COMPUTE_START', 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START'])
            trace.at(name)
          trace.at('COMPUTE_END')
        })
        trace.at('HTTP_SEND_START')
        trace.at('HTTP_SEND_END')
        begun.done()
      },
      flush,
    )
    for (const [name, cost] of Object.entries({ frame, request }))
      report(`tracing_${name}`, 'us of CPU', { sampling: sampling ?? 'off', ...cost, rounds: pairs })
    await traces?.stop(5_000)
  }
}

type Round = Readonly<{ frames: number; cpuMs: number }>
type Side = Readonly<{ round: (forMs: number) => Promise<Round>; stop: () => Promise<void> }>

async function started(folder: string, more: object) {
  const [httpPort, metricsPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
  const file = join(folder, `${httpPort}.json`)
  const pipeline = {
    apiVersion: 'gantry/v1',
    server: { httpPort, metricsPort, grpcPort },
    log: { level: 'error' },
    store: { path: join(folder, `${httpPort}.store`) },
    ...more,
  }
  await writeFile(file, JSON.stringify(pipeline))
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'serve', '-c', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const isOk = (path: string) =>
    fetch(`http://127.0.0.1:${httpPort}${path}`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until('the service', () => isOk('/readyz'), 60_000)
  return {
    ports: { httpPort, metricsPort, grpcPort },
    modelsReady: () => until('models', () => isOk('/v2/health/ready'), 60_000),
    cpuMs: () => treeCpuSeconds(child.pid!) * 1e3,
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Both under one client, which has asked for a while when it is measured: what one request in a hundred runs takes long to be compiled. */
async function requestTurns(
  folder: string,
  repository: string,
  settings: readonly object[],
): Promise<Turns[]> {
  const models = { repository, control: 'explicit', load: ['tiny'] }
  const running: Awaited<ReturnType<typeof started>>[] = []
  try {
    for (const more of settings)
      running.push(await started(folder, { engines: 0, models, modelServer: { nice: 0 }, ...more }))
    for (const each of running) await each.modelsReady()
    const ports = running.map(({ ports: { httpPort, grpcPort } }) =>
      question === 'grpc' ? grpcPort : httpPort,
    )
    await ask(ports, warmSeconds)
    const before = running.map(({ cpuMs }) => cpuMs())
    const figures = await ask(ports, roundMs / 1_000)
    return figures.map(({ n, p99 }, index) => ({
      frames: n,
      cpuMs: running[index]!.cpuMs() - before[index]!,
      p99,
    }))
  } finally {
    for (const each of running) await each.stop()
  }
}

async function ask(ports: readonly number[], seconds: number) {
  const script = fileURLToPath(new URL('./infer-clients.mjs', import.meta.url))
  const addresses = ports.map((port) => `127.0.0.1:${port}`).join(',')
  const args = [script, question, addresses, String(seconds), 'kilobyte']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as readonly Readonly<{ n: number; p99: number }>[]
}

async function camerasOf(folder: string, settings: readonly object[], more: object): Promise<Side> {
  const disabled = settings.map((camera) => ({ ...camera, enabled: false }))
  const models = { repository: join(root, 'models') }
  const running = await started(folder, {
    cameras: disabled,
    models,
    modelServer: { enabled: false },
    ...more,
  })
  const { httpPort, metricsPort } = running.ports
  const counted = async () => {
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    const counts = page.matchAll(/^gantry_frames_total\{.*state="inferred".*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }
  const switchCameras = async (enabled: boolean) => {
    for (let index = 1; index <= cameras; index += 1)
      await fetch(`http://127.0.0.1:${httpPort}/api/v1/cameras/cam-${index}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ enabled }),
      })
    await pause(4_000)
  }
  return {
    stop: running.stop,
    round: async (forMs) => {
      await switchCameras(true)
      const before = { frames: await counted(), cpuMs: running.cpuMs() }
      await pause(forMs)
      const round = { frames: (await counted()) - before.frames, cpuMs: running.cpuMs() - before.cpuMs }
      await switchCameras(false)
      return round
    },
  }
}

/** A process that runs costs a few percent more or less than the same one started again, so each pair has services of its own. */
async function inPairs(endpoint: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'))
  const ends: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const turns = await turnsOf(folder, ends)
    const [cpu, tails]: [number[], number[]] = [[], []]
    for (let pair = 0; pair < pairs; pair += 1) {
      const order = [{}, { tracing: { endpoint, sampling: 0.01 } }]
      const rounds = await turns(pair % 2 === 0 ? order : order.reverse())
      const [without, having] = (pair % 2 === 0 ? rounds : rounds.reverse()) as [Turns, Turns]
      const ratio = having.cpuMs / having.frames / (without.cpuMs / without.frames)
      report(`tracing, ${question}, a pair`, 'ratio', { cpu: ratio })
      cpu.push(ratio)
      tails.push((having.p99 ?? 1) / (without.p99 ?? 1))
    }
    const { median, interval } = medianOf(cpu)
    const tail =
      question === 'cameras' ? {} : { p99: medianOf(tails).median, p99Interval: medianOf(tails).interval }
    report(`tracing, ${question}`, 'ratio', {
      cpu: median,
      cpuInterval: interval,
      ...tail,
      pairs,
      seconds: roundMs / 1e3,
    })
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

type Turns = Round & Readonly<{ p99?: number }>

/** Two services, each with its turn: one, the other, the other, one. */
async function cameraTurns(
  side: (more: object) => Promise<Side>,
  settings: readonly object[],
): Promise<Turns[]> {
  const running: Side[] = []
  try {
    for (const more of settings) running.push(await side(more))
    for (const each of running) await each.round(Math.min(roundMs, 5_000))
    const rounds: Round[][] = [[], []]
    for (const index of [0, 1, 1, 0]) rounds[index]!.push(await running[index]!.round(roundMs))
    return rounds.map((own) => ({
      frames: own.reduce((sum, { frames }) => sum + frames, 0),
      cpuMs: own.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    }))
  } finally {
    for (const each of running) await each.stop()
  }
}

async function turnsOf(
  folder: string,
  ends: (() => unknown)[],
): Promise<(settings: readonly object[]) => Promise<Turns[]>> {
  if (question === 'cameras') {
    const rtsp = await rtspCameras(cameras)
    ends.push(() => rtsp.stop())
    const side = (more: object) => camerasOf(folder, cameraSettings(rtsp, cameras, fps), more)
    return (settings) => cameraTurns(side, settings)
  }
  const { dir } = tinyRepository(tinyInputs.find((input) => input === 'kilobyte'))
  ends.push(() => rm(dir, { recursive: true, force: true }))
  return (settings) => requestTurns(folder, dir, settings)
}

if (!['step', 'http', 'grpc', 'cameras'].includes(question))
  throw new Error('usage: tracing-cost.bench.ts step|http|grpc|cameras [pairs] [seconds]')
const taking = await collector()
try {
  await (question === 'step' ? steps(taking.url) : inPairs(taking.url))
} finally {
  taking.stop()
}
