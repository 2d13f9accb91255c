import type { ModelServerHealth, ModelsView } from '../../src/api/gantry.js'
import type { ModelVersionView, ModelView, ModelWork } from '../../src/serving/model-view.js'

type ModelItem = ModelsView['items'][number]

/** What a model server tells that serves these models. */
export function fakeModelList(
  items: readonly ModelItem[],
  server: Partial<ModelsView['server']> = {},
): ModelsView {
  return {
    server: { state: 'ready', reason: '', control: 'explicit', isTold: true, ...server },
    ensemble: 'ppe',
    items,
  }
}

/** A detector with one version that serves. */
export function fakeModel(name: string, more: Partial<ModelItem> = {}): ModelItem {
  const model: ModelView = {
    name,
    platform: 'onnxruntime_onnx',
    maxBatchSize: 8,
    inputs: [{ name: 'images', datatype: 'FP32', shape: [-1, 3, 416, 416] }],
    outputs: [{ name: 'output0', datatype: 'FP32', shape: [-1, 11, 3_549] }],
    steps: [],
    isCached: false,
    versions: [fakeVersion()],
  }
  return { ...model, forCameras: [], ...more }
}

export function fakeVersion(more: Partial<ModelVersionView> = {}): ModelVersionView {
  return {
    version: '1',
    state: 'READY',
    reason: '',
    loadMs: 412,
    instances: { count: 2, ready: 2 },
    places: ['cpu'],
    failedPlaces: [],
    work: fakeWork(),
    ...more,
  }
}

/** Of so many requests, each 20 ms in the model. */
export function fakeWork(requests = 120, more: Partial<ModelWork> = {}): ModelWork {
  const each = (ms: number) => ({ count: requests, ms: requests * ms })
  const none = { count: 0, ms: 0 }
  return {
    waiting: 0,
    items: requests,
    runs: Math.ceil(requests / 2),
    lastMs: requests === 0 ? null : Date.now() - 2_000,
    durations: {
      success: each(24),
      fail: none,
      queue: each(3),
      compute_input: each(0.4),
      compute_infer: each(20),
      compute_output: each(0.6),
      cache_hit: none,
      cache_miss: none,
    },
    latencyMs: requests === 0 ? null : { p50: 21.4, p99: 48.9 },
    failures: {},
    batches: [
      { size: 1, runs: Math.ceil(requests / 4), inferMs: requests * 3 },
      { size: 4, runs: Math.ceil(requests / 8), inferMs: requests * 6 },
      { size: 8, runs: Math.ceil(requests / 16), inferMs: requests * 5 },
    ],
    ...more,
  }
}

/** A version that does not serve. */
export function fakeDown(
  version: string,
  state: ModelVersionView['state'],
  reason: string,
): ModelVersionView {
  return fakeVersion({ version, state, reason, loadMs: null, instances: null, places: [], work: null })
}

export const fakeModelServer: ModelServerHealth = {
  state: 'ready',
  pid: 4244,
  restarts: 0,
  reason: '',
  models: { total: 3, ready: 2 },
  grpcPort: 8001,
  providerFailures: [],
}
