import { isIP } from 'node:net'
import { join } from 'node:path'
import { installation } from '../../lifecycle/installation.js'
import { ServerRefusalError } from '../client/client-errors.js'
import type { KServeClient, ModelRef } from '../client/kserve-client.js'
import { LoopingRtspServer } from '../rtsp-server/looping-rtsp-server.js'
import type { ArrivalDistribution } from './arrivals.js'
import { CameraLoad } from './camera-load.js'
import { ConcurrencyLoad } from './concurrency-load.js'
import { FrameLoad } from './frame-load.js'
import type { GantryApi } from '../client/gantry-api.js'
import { shapedInputs, type ShapedInput } from './input-data.js'
import type { LevelRange } from './level-range.js'
import { RequestRing, type Load } from './load.js'
import { PerfSettingError } from './perf-errors.js'
import type { PerfReport } from './perf-report.js'
import { pictureInput } from './picture-tensors.js'
import { RateLoad } from './rate-load.js'
import { requestInputs } from './request-inputs.js'
import { countersReader, type CountersReader } from './server-split.js'

/** A load as it is asked for. */
export type PerfLoad =
  | Readonly<{ kind: 'concurrency'; range: LevelRange }>
  | Readonly<{ kind: 'rate'; range: LevelRange; distribution: ArrivalDistribution; mostUnderWay: number }>
  | Readonly<{
      kind: 'cameras'
      range: LevelRange
      fps: number
      /** A path, or the URL of a camera; undefined: a clip of this installation. */
      source: string | undefined
    }>

export type TargetOptions = Readonly<{
  load: PerfLoad
  /** Undefined: cameras of a service. */
  model: ModelRef | undefined
  batchSize: number
  shapes: ReadonlyMap<string, readonly number[]>
  inputData: string
  seed: number
}>

/** What is measured. */
export type PerfTarget = Readonly<{
  facts: Pick<PerfReport, 'url' | 'server' | 'model' | 'protocol' | 'inputs' | 'inputData' | 'load'>
  /** Inferences of a request. */
  batchSize: number
  /** A load that is not started, and how the server's counters for it are read. */
  at(level: number): Readonly<{ load: Load; read: CountersReader }>
  close(): void
}>

const bundledClip = join(installation, 'pipelines/demo/clips/dock.mp4')

/**
 * A model of any server of the protocol.
 *
 * @param client - closed when the target is, or when this fails.
 * @throws PerfSettingError, RemoteModelMissingError, ServerRefusalError for a model that is not ready, and what asking the server gives.
 */
export async function modelTarget(
  client: KServeClient,
  model: ModelRef,
  options: TargetOptions,
  signal: AbortSignal,
): Promise<PerfTarget> {
  try {
    return await lookedAt(client, model, options, signal)
  } catch (error) {
    client.close()
    throw error
  }
}

async function lookedAt(
  client: KServeClient,
  model: ModelRef,
  options: TargetOptions,
  signal: AbortSignal,
): Promise<PerfTarget> {
  const { load, batchSize } = options
  const server = await client.serverMetadata()
  const served = await client.modelMetadata(model)
  if (!(await client.modelReady(model)))
    throw new ServerRefusalError(client.url, `model "${model.name}" is not ready`, 503)
  const config = await client.modelConfig(model)
  const inputs = shapedInputs(served, config, options)
  const read = await countersReader(client, model, config)
  const lane = () => client.lane()
  const facts = {
    url: client.url,
    server: { name: server.name, version: server.version },
    model: model.version === undefined ? model.name : `${model.name} version ${model.version}`,
    protocol: client.target.protocol,
    inputs,
    inputData: load.kind === 'cameras' ? (load.source ?? bundledClip) : options.inputData,
  }
  const close = () => client.close()
  if (load.kind === 'cameras') {
    const picture = pictureInput(inputs)
    const source = load.source ?? bundledClip
    const own = { cameras: 1, fps: load.fps, source, picture }
    const prepare = prepareFrames(client, model, inputs)
    return {
      facts: { ...facts, load: { kind: 'cameras', fps: load.fps, decodedBy: 'client' } },
      batchSize: 1,
      at: (level) => ({ load: new FrameLoad({ ...own, cameras: level }, lane, prepare), read }),
      close,
    }
  }
  const batched = config === undefined ? batchSize > 1 : config.maxBatchSize > 0
  const data = { data: options.inputData, seed: options.seed, batchSize: batched ? batchSize : undefined }
  const tensors = await requestInputs(inputs, data, signal)
  const requests = tensors.map((each) => client.prepare(model, each))
  const { kind } = load
  return {
    facts: { ...facts, load: kind === 'rate' ? { kind, distribution: load.distribution } : { kind } },
    batchSize,
    at: (level) => {
      const ring = new RequestRing(requests)
      if (load.kind === 'concurrency') return { load: new ConcurrencyLoad(level, lane, ring), read }
      const { distribution, mostUnderWay } = load
      const arrivals = { perSecond: level, distribution, seed: options.seed }
      return { load: new RateLoad({ arrivals, mostUnderWay }, lane, ring), read }
    },
    close,
  }
}

function prepareFrames(client: KServeClient, model: ModelRef, inputs: readonly ShapedInput[]) {
  if (inputs.length !== 1)
    throw new PerfSettingError(
      `model "${model.name}" wants ${inputs.map(({ name }) => name).join(', ')}: cameras give pictures alone`,
      'Load it with --concurrency or --request-rate and --input-data.',
    )
  return (tensor: Parameters<KServeClient['prepare']>[1][number]) => client.prepare(model, [tensor])
}

/**
 * Cameras of a running service of Gantry. A clip is served to it from here, so the service must be on this machine; a camera by URL it
 * opens itself.
 *
 * @throws PerfSettingError, and what asking the service gives.
 */
export async function cameraTarget(
  api: GantryApi,
  load: Extract<PerfLoad, { kind: 'cameras' }>,
  signal: AbortSignal,
): Promise<PerfTarget> {
  const { target } = api
  if (target.protocol === 'grpc')
    throw new PerfSettingError(
      'cameras are added by HTTP',
      'Name the HTTP port of the service, or a model with -m.',
    )
  if (!(await api.isThere()))
    throw new PerfSettingError(
      `the server at ${target.url} is no Gantry with cameras`,
      'Name a model with -m: frames are decoded here then, and sent to it.',
    )
  const source = load.source ?? bundledClip
  const isUrl = /^[a-z]+:\/\//i.test(source)
  if (!isUrl && !isOfThisMachine(target.host))
    throw new PerfSettingError(
      `${target.host} is another machine, and a clip is served on this one alone`,
      'Name a camera that the service can reach: --clip rtsp://HOST/PATH.',
    )
  const rtsp = isUrl ? undefined : await served(source)
  return {
    facts: {
      url: target.url,
      server: { name: 'gantry', version: '' },
      model: 'cameras',
      protocol: 'cameras',
      inputs: [],
      inputData: source,
      load: { kind: 'cameras', fps: load.fps, decodedBy: 'service' },
    },
    batchSize: 1,
    at: (level) => {
      const urlOf = () => rtsp?.url('/perf') ?? source
      const made = new CameraLoad(api, { cameras: level, fps: load.fps, urlOf }, signal)
      return { load: made, read: made.counters }
    },
    close: () => void rtsp?.stop(),
  }
}

async function served(clip: string): Promise<LoopingRtspServer> {
  const server = new LoopingRtspServer()
  try {
    await server.start()
    await server.addStream('/perf', clip)
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

function isOfThisMachine(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
