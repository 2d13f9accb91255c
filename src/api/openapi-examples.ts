const settings = {
  url: 'rtsp://192.0.2.10:554/stream1',
  sampleFps: 5,
  transport: 'tcp',
  hwaccel: 'none',
  decode: 'full',
  videoTrack: 1,
  loop: true,
  frozenAfterMs: 30_000,
  enabled: true,
}

const camera = {
  id: 'dock-1',
  config: { id: 'dock-1', name: 'Dock, north side', ...settings },
  persist: true,
  origin: 'api',
  status: {
    state: 'live',
    reason: '',
    sinceMs: 1_795_844_120_606,
    attempts: 1,
    decode: { mode: 'full', keyFrameGapMs: null, reason: '', by: 'software', byReason: '' },
  },
  stats: {
    inferredFps: 4.8,
    receivedFps: 4.8,
    latencyMs: { p50: 26.79, p99: 62.76 },
    frames: {
      received: 50,
      inferred: 50,
      reused: 0,
      superseded: 0,
      suspect: 0,
      lost: 0,
      shed: { inference_failed: 0, stopping: 0 },
    },
    decoderCpuShare: 0.04,
    frozen: false,
    source: { widthPx: 1280, heightPx: 720 },
  },
}

const preview = {
  state: 'ok',
  detail: '1280x720, first picture after 412 ms',
  hint: '',
  source: { widthPx: 1280, heightPx: 720 },
  codec: 'h264',
  fps: 25,
  firstPictureMs: 412,
  warnings: [],
  picture: { widthPx: 1280, heightPx: 720, mime: 'image/jpeg', base64: '/9j/2Q==' },
}

const detections = {
  cameraId: 'dock-1',
  seq: 50,
  capturedAt: '2026-11-20T08:15:30.120Z',
  ptsMs: 9_840,
  frame: { widthPx: 1280, heightPx: 720, quality: 'ok' },
  model: { name: 'ppe', version: '1' },
  detections: [
    { label: 'person', score: 0.8704, boxPx: { x1: 156.79, y1: 352.26, x2: 250.1, y2: 578.05 } },
    { label: 'no_vest', score: 0.7705, boxPx: { x1: 167.1, y1: 386.87, x2: 223.16, y2: 461.01 } },
  ],
  timingsMs: { queue: 0.26, infer: 22.41, postprocess: 0.32, captureToPublish: 24.01 },
}

const readiness = {
  ready: true,
  reasons: [],
  engines: [
    {
      index: 0,
      state: 'ready',
      device: null,
      pid: 8591,
      restarts: 0,
      reason: '',
      detector: {
        model: { name: 'ppe', version: '1' },
        detector: { name: 'ppe_detect_video', version: '1' },
        labels: ['helmet', 'head', 'person', 'vest', 'no_vest', 'machinery', 'vehicle'],
        head: 'yolov8',
        provider: 'cpu',
        providerNotes: [],
        providerFailures: [],
        instances: 2,
        instancesReady: 2,
        maxBatchSize: 1,
        input: { widthPx: 800, heightPx: 448 },
        inputFrom: 'dims of config.pbtxt',
      },
      cameras: 4,
    },
  ],
  sinks: [
    {
      name: 'kafka',
      state: 'up',
      reason: '',
      queued: 0,
      delivered: 1_204,
      dropped: 0,
      filtered: 0,
      rejected: {},
    },
  ],
  cache: { backend: 'memory', state: 'up', reason: 'results are kept in this process' },
  store: { state: 'up', reason: 'records are stored', bytes: 48_234_496 },
  stream: { state: 'ready', pid: 8602, restarts: 0, reason: '', clients: 1 },
  modelServer: {
    state: 'ready',
    pid: 8606,
    restarts: 0,
    reason: '',
    models: { total: 1, ready: 1 },
    grpcPort: 8001,
    providerFailures: [],
  },
  tlsDoor: null,
  cluster: null,
  cameras: { total: 4, byState: { live: 4 } },
}

const webhooks = [{ name: 'webhook', origin: 'https://hooks.example', signed: true, batches: false }]

const mqtt = [
  {
    name: 'mqtt',
    broker: 'mqtts://broker.example:8883',
    wantsLogin: true,
    topicPrefix: 'gantry',
    homeAssistant: true,
  },
]

const kafka = {
  brokers: ['127.0.0.1:9092'],
  topic: 'gantry.detections.v1',
  security: 'PLAINTEXT',
  saslMechanism: null,
}

const none = { count: 0, ms: 0 }

const models = {
  server: { state: 'ready', reason: '', control: 'asked', isTold: true },
  ensemble: 'ppe',
  items: [
    {
      name: 'ppe_detect',
      platform: 'onnxruntime_onnx',
      maxBatchSize: 8,
      inputs: [{ name: 'images', datatype: 'FP32', shape: [-1, 3, 448, 800] }],
      outputs: [{ name: 'output0', datatype: 'FP32', shape: [-1, 11, 7_350] }],
      steps: [],
      isCached: false,
      versions: [
        {
          version: '1',
          state: 'READY',
          reason: '',
          loadMs: 412.6,
          instances: { count: 2, ready: 2 },
          places: ['cpu'],
          failedPlaces: [],
          work: {
            waiting: 0,
            items: 120,
            runs: 96,
            lastMs: 1_795_844_120_606,
            durations: {
              success: { count: 120, ms: 3_412.4 },
              fail: none,
              queue: { count: 120, ms: 84.2 },
              compute_input: { count: 120, ms: 21.7 },
              compute_infer: { count: 120, ms: 3_290.1 },
              compute_output: { count: 120, ms: 16.4 },
              cache_hit: none,
              cache_miss: none,
            },
            latencyMs: { p50: 26.4, p99: 48.9 },
            failures: {},
            batches: [
              { size: 1, runs: 72, inferMs: 1_742.3 },
              { size: 2, runs: 24, inferMs: 1_547.8 },
            ],
          },
        },
      ],
      forCameras: [],
    },
  ],
}

const coverage = {
  from: '2026-11-20T08:00:00.000Z',
  to: '2026-11-20T09:00:00.000Z',
  items: [
    {
      cameraId: 'dock-1',
      from: '2026-11-20T08:00:00.000Z',
      to: '2026-11-20T09:00:00.000Z',
      watchedSeconds: 3_557.8,
      blindSeconds: 42.2,
      blindSecondsByCause: { disconnected: 42.2 },
      last: { since: '2026-11-20T08:20:53.600Z', state: 'watched', cause: null },
      spans: [
        {
          from: '2026-11-20T08:00:00.000Z',
          to: '2026-11-20T08:20:11.400Z',
          state: 'watched',
          cause: null,
        },
        {
          from: '2026-11-20T08:20:11.400Z',
          to: '2026-11-20T08:20:53.600Z',
          state: 'blind',
          cause: 'disconnected',
        },
        {
          from: '2026-11-20T08:20:53.600Z',
          to: '2026-11-20T09:00:00.000Z',
          state: 'watched',
          cause: null,
        },
      ],
    },
  ],
}

const room = { limitedBy: 'cpu', reason: 'with one more the processor is used up' }

const headroom = {
  ...room,
  cameras: 5,
  objectiveMs: 300,
  now: {
    measuredAt: '2026-11-20T08:15:30.440Z',
    cameras: 4,
    comingCameras: 0,
    cores: { all: 2, busy: 0.59 },
    instances: { all: 2, busy: 0.12 },
    p99Ms: 62.8,
  },
  perCamera: { framesPerSecond: 5, decoderCores: 0.069, cpuMsPerFrame: 28.1, runMs: 24.7 },
  predicted: { busyCores: 1.85, busyInstances: 0.86, p99Ms: 94.2 },
  cluster: {
    cameras: 10,
    reason: 'with one more, as ids fall on average, node plant-1 has no room',
    sum: 11,
    nodes: [
      { node: 'plant-1', slots: 128, ...room, cameras: 5 },
      { node: 'plant-2', slots: 128, ...room, cameras: 6 },
    ],
  },
}

/** Values that several bodies share, or that are long. */
export const exampleValues = {
  settings,
  camera,
  preview,
  detections,
  readiness,
  webhooks,
  mqtt,
  kafka,
  models,
  coverage,
  headroom,
}

/** An example of each parameter, by its name: as it stands in the URL. */
export const parameterExamples: Readonly<Record<string, string>> = {
  id: 'dock-1',
  camera: 'dock-1',
  cameraId: 'dock-1',
  spans: '1',
  label: 'no_vest',
  from: '2026-11-20T08:00:00Z',
  to: '2026-11-20T09:00:00Z',
  limit: '20',
  cursor: 'eyJvIjoxfQ',
  overlay: '1',
  size: 'own',
  like: 'dock-1',
  sampleFps: '5',
  latencyMs: '300',
  model: 'classifier',
  version: '1',
  repository: 'models',
  region: 'input',
  guide: 'metrics.md',
  folder: 'runbooks',
  page: 'engine-down.md',
}
