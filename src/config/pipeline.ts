import { z } from 'zod'
import { cameraSchema } from './camera.js'
import { cameraNetworksSchema } from './camera-networks.js'

const portSchema = z.number().int().min(0).max(65_535)

export const serverSchema = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on. Anything but loopback needs a token.'),
  httpPort: portSchema.default(8000).describe('HTTP, WebSocket and dashboard; 0 takes a free port.'),
  grpcPort: portSchema.default(8001).describe('gRPC of the model server (KServe v2); 0 takes a free port.'),
  metricsPort: portSchema
    .default(8002)
    .describe(
      'A second listener with /metrics only; 0 takes a free port, that of `httpPort` does without it.',
    ),
  token: z
    .string()
    .min(16)
    .optional()
    .describe('Bearer token every request must carry. Write ${NAME} or ${file:PATH}, not the token itself.'),
  insecure: z
    .boolean()
    .default(false)
    .describe('Allow a public address without a token. Anyone who can connect is admin.'),
  allowedOrigins: z
    .array(z.string())
    .default([])
    .describe('Browser origins besides our own that may use the API.'),
  maxBodyBytes: z
    .number()
    .int()
    .min(1024)
    .max(1024 ** 3)
    .default(10 * 1024 * 1024)
    .describe('Largest body of a request, such as a pushed picture.'),
  maxRequestsPerMinute: z
    .number()
    .int()
    .min(0)
    .max(10_000_000)
    .default(6_000)
    .describe('Most requests of one address to the API; more are answered 429. 0 sets no limit.'),
  maxStreamClients: z
    .number()
    .int()
    .min(1)
    .max(20_000)
    .default(5_000)
    .describe('Most WebSocket clients at a time.'),
})

const repositorySchema = z.string().min(1)

export const modelsSchema = z.strictObject({
  repository: z
    .union([repositorySchema, z.array(repositorySchema).min(1)])
    .default('../models')
    .describe('Folder of models, or a list of folders; relative to this file.'),
  configName: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, 'must be a plain name, without .pbtxt')
    .optional()
    .describe(
      'API clients: models that have `configs/<configName>.pbtxt` are configured by it instead of `config.pbtxt`.',
    ),
  control: z
    .enum(['none', 'poll', 'explicit'])
    .default('none')
    .describe(
      'Which models API clients get: `none` loads all at the start, `poll` follows the folder, `explicit` loads `models.load` and what clients ask for. Cameras read their model at the start of an engine.',
    ),
  load: z
    .array(z.string().min(1).max(128))
    .default([])
    .describe('With `explicit`: models to load at the start; `*` alone loads all.'),
  pollSeconds: z
    .number()
    .min(0.05)
    .max(86_400)
    .default(15)
    .describe('With `poll`: time between two looks; a change is taken once two looks agree on it.'),
  allowJsBackends: z
    .boolean()
    .default(false)
    .describe(
      'Let models bring code of their own (`backend: "js"`). It runs with the rights of the service.',
    ),
  cache: z
    .strictObject({
      sizeBytes: z
        .number()
        .int()
        .min(0)
        .max(64 * 1024 ** 3)
        .default(64 * 1024 ** 2)
        .describe('Memory for answers of models with `response_cache`; 0 keeps none.'),
      redis: z
        .url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// URL' })
        .optional()
        .describe(
          'redis:// URL: answers are kept there instead of in memory, for all services that share it.',
        ),
      ttlSeconds: z
        .number()
        .int()
        .min(1)
        .max(30 * 24 * 3600)
        .default(3600)
        .describe('Age at which an answer in Redis is forgotten.'),
    })
    .prefault({}),
})
export type ModelsConfig = Readonly<z.infer<typeof modelsSchema>>

/** The process that answers API clients of the models. */
export const modelServerSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Serve the models to API clients: `/v2` and gRPC.'),
  nice: z
    .number()
    .int()
    .min(0)
    .max(19)
    .default(10)
    .describe(
      'Priority of the process once there are cameras: at more than 0 they get the processor first, and requests what is left of it.',
    ),
  maxRequestBytes: z
    .number()
    .int()
    .min(1024)
    .max(1024 ** 3)
    .default(64 * 1024 ** 2)
    .describe('Largest inference request, by HTTP or gRPC.'),
  rateLimit: z
    .strictObject({
      mode: z
        .enum(['off', 'execution_count'])
        .default('off')
        .describe(
          'With `execution_count`, a run waits for the resources that `rate_limiter` of its `instance_group` asks for.',
        ),
      resources: z
        .array(
          z.strictObject({
            name: z.string().min(1).max(128).describe('As `rate_limiter` names it.'),
            count: z.number().int().min(1).max(1_000_000).describe('How much there is of it.'),
            device: z
              .string()
              .regex(/^(cpu|gpu\d+)$/, 'must be cpu or gpu<number>')
              .optional()
              .describe(
                'Device it is on; without it, every device, or all together if the resource is global.',
              ),
          }),
        )
        .max(256)
        .default([])
        .describe('How much there is of a resource; else the most that one instance asks for.'),
    })
    .prefault({}),
  trace: z
    .strictObject({
      dir: z
        .string()
        .min(1)
        .optional()
        .describe(
          'Folder for trace files that clients ask for; relative to this file. Without it no traces are written.',
        ),
      maxBytes: z
        .number()
        .int()
        .min(1024 ** 2)
        .max(1024 ** 4)
        .default(100 * 1024 ** 2)
        .describe('Most bytes of trace files; the oldest go first.'),
    })
    .prefault({}),
  probe: z
    .strictObject({
      enabled: z
        .boolean()
        .default(true)
        .describe('Run a new or changed model once in a process with limits, before it is loaded.'),
      memoryBytes: z
        .number()
        .int()
        .min(256 * 1024 ** 2)
        .default(4 * 1024 ** 3)
        .describe('Most memory a model may take in that run.'),
      cpuSeconds: z
        .number()
        .int()
        .min(1)
        .max(3600)
        .default(10)
        .describe('Most processor time that run may take, besides a second for each 100 MB of the model.'),
    })
    .prefault({}),
})
export type ModelServerConfig = Readonly<z.infer<typeof modelServerSchema>>

export const executionProviders = ['cuda', 'tensorrt', 'webgpu', 'cpu'] as const
export type ExecutionProvider = (typeof executionProviders)[number]

/** Scheduling of the camera path; what is absent follows from the provider that runs: see docs/architecture.md. */
export const inferenceSchema = z.strictObject({
  providers: z
    .array(z.enum(executionProviders))
    .min(1)
    .default(['cuda', 'cpu'])
    .describe('Execution providers, tried in this order.'),
  deviceId: z.number().int().min(0).default(0).describe('GPU number for cuda and tensorrt.'),
  instances: z
    .number()
    .int()
    .min(1)
    .max(64)
    .optional()
    .describe('Sessions side by side. Default: cores on CPU, 1 on a GPU.'),
  intraOpThreads: z.number().int().min(1).max(256).default(1).describe('Threads in one session, on CPU.'),
  maxBatchSize: z
    .number()
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe('Most frames in one run. Default: 1 on CPU, 8 on a GPU.'),
  maxQueueDelayMs: z.number().min(0).max(1_000).default(5).describe('Longest a frame waits for company.'),
  runTimeoutMs: z
    .number()
    .int()
    .min(100)
    .max(600_000)
    .default(30_000)
    .describe('Longest a run may take; then the engine counts as hung and is started again.'),
  scoreThreshold: z.number().min(0).max(1).default(0.3).describe('Detections under this are not reported.'),
  iouThreshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe('Overlap above which NMS keeps only the best box of a class.'),
  maxDetections: z.number().int().min(1).max(10_000).default(300).describe('Most detections of one frame.'),
})
export type InferenceConfig = Readonly<z.infer<typeof inferenceSchema>>

/** What Apache Kafka takes for the name of a topic. */
const topicSchema = z
  .string()
  .max(249)
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]+$/, 'must be a name of letters, digits, ".", "_" and "-"')

export const kafkaSchema = z.strictObject({
  brokers: z
    .array(z.string().regex(/^[^\s:]+:\d{1,5}$/, 'must be host:port'))
    .min(1)
    .describe('Brokers to ask first, as host:port.'),
  clientId: z.string().min(1).default('gantry').describe('Name in the logs of the brokers.'),
  topics: z
    .strictObject({
      detections: topicSchema.default('gantry.detections.v1').describe('Topic of the results.'),
      events: topicSchema
        .default('gantry.events.v1')
        .describe('Topic of the events; nothing is sent there in this version.'),
    })
    .prefault({}),
  createTopics: z.boolean().default(true).describe('Create missing topics.'),
  partitions: z.number().int().min(1).max(1_000).default(6).describe('Partitions of topics created here.'),
  replicationFactor: z.number().int().min(-1).default(-1).describe('-1 takes the broker default.'),
  retentionMs: z
    .number()
    .int()
    .min(60_000)
    .default(7 * 24 * 3600 * 1000)
    .describe('Retention of topics created here.'),
  lingerMs: z.number().min(0).max(10_000).default(20).describe('Longest a record waits for a batch.'),
  maxBatchRecords: z.number().int().min(1).max(100_000).default(500).describe('Most records in one request.'),
  maxQueuedRecords: z
    .number()
    .int()
    .min(1)
    .default(10_000)
    .describe('Records kept while the broker is away; then oldest go.'),
  maxQueuedBytes: z
    .number()
    .int()
    .min(64 * 1024)
    .default(32 * 1024 ** 2)
    .describe('Bytes of record values kept while the broker is away; then oldest go.'),
  compression: z.enum(['none', 'gzip']).default('gzip').describe('Of record batches.'),
  idempotent: z.boolean().default(true).describe('Let the broker drop what a retry sends twice.'),
  ssl: z.boolean().default(false).describe('Connect by TLS.'),
  sasl: z
    .strictObject({
      mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).describe('How to log in.'),
      username: z.string().describe('Login name.'),
      password: z.string().describe('Write ${NAME} or ${file:PATH}, not the password itself.'),
    })
    .optional(),
})
export type KafkaConfig = Readonly<z.infer<typeof kafkaSchema>>

export const cacheSchema = z.strictObject({
  redis: z
    .url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// URL' })
    .optional()
    .describe('redis:// URL; without it results are kept in memory only.'),
  keyPrefix: z.string().max(64).default('gantry:').describe('Start of every key in Redis.'),
  ttlSeconds: z
    .number()
    .int()
    .min(1)
    .default(300)
    .describe('How long the latest result of a silent camera stays.'),
  recentPerCamera: z.number().int().min(1).max(100_000).default(500).describe('Results kept per camera.'),
  recentTtlSeconds: z
    .number()
    .int()
    .min(1)
    .max(30 * 24 * 3600)
    .default(24 * 3600)
    .describe('Age at which a recent result is forgotten, however few there are.'),
  commandTimeoutMs: z
    .number()
    .int()
    .min(5)
    .max(10_000)
    .default(50)
    .describe('Longest a command may take before Redis counts as failing.'),
})
export type CacheConfig = Readonly<z.infer<typeof cacheSchema>>

/** Cameras whose id an earlier one has. Takes input that may have failed every other check. */
export function duplicateCameras(cameras: unknown): { path: (string | number)[]; message: string }[] {
  if (!Array.isArray(cameras)) return []
  const ids = cameras.map((camera: unknown) =>
    typeof camera === 'object' && camera !== null && 'id' in camera ? camera.id : undefined,
  )
  return ids.flatMap((id, index) => {
    const first = ids.indexOf(id)
    if (typeof id !== 'string' || first === index) return []
    const message = `camera id "${id}" is already used by cameras[${first}]; ids must differ`
    return [{ path: ['cameras', index, 'id'], message }]
  })
}

/** gRPC cannot share a port; the metrics may stay on that of HTTP alone. */
function sharedPorts({
  httpPort,
  grpcPort,
  metricsPort,
}: z.infer<typeof serverSchema>): { path: string[]; message: string }[] {
  const taken = new Map([
    [metricsPort, 'metricsPort'],
    [httpPort, 'httpPort'],
  ]).get(grpcPort)
  if (grpcPort === 0 || taken === undefined) return []
  const message = `is ${grpcPort}, which server.${taken} takes already; gRPC needs a port of its own`
  return [{ path: ['server', 'grpcPort'], message }]
}

function camerasWithoutEngine(
  cameras: readonly unknown[],
  engines: number,
): { path: string[]; message: string }[] {
  if (engines > 0 || cameras.length === 0) return []
  return [{ path: ['engines'], message: 'must be at least 1 where cameras are listed' }]
}

/** The pipeline file, `pipelines/*.yaml`. */
export const pipelineSchema = z
  .strictObject({
    apiVersion: z.literal('gantry/v1').describe('Format of this file.'),
    name: z.string().min(1).max(64).default('gantry').describe('Shown on the page and told to clients.'),
    server: serverSchema.prefault({}),
    models: modelsSchema.prefault({}),
    modelServer: modelServerSchema.prefault({}),
    ensemble: z
      .string()
      .min(1)
      .max(128)
      .default('ppe')
      .describe('Model of the repository that analyses the cameras.'),
    inference: inferenceSchema.prefault({}),
    engines: z
      .number()
      .int()
      .min(0)
      .max(64)
      .default(1)
      .describe('Engine processes the cameras are spread over; 0 for a model server without cameras.'),
    maxConcurrentConnects: z
      .number()
      .int()
      .min(1)
      .max(256)
      .default(4)
      .describe('Decoders that may be starting at once.'),
    mediaRoot: z
      .string()
      .optional()
      .describe('Folder that file cameras must lie in; default: the folder of this file.'),
    cameras: z.array(cameraSchema).max(1024).default([]),
    cameraNetworks: cameraNetworksSchema.prefault({}),
    tracking: z.strictObject({}).prefault({}).describe('No settings in this version.'),
    rules: z
      .array(z.never('rules are not available in this version: leave the list empty'))
      .default([])
      .describe('None in this version: leave the list empty.'),
    sinks: z.strictObject({ kafka: kafkaSchema.optional() }).prefault({}),
    cache: cacheSchema.prefault({}),
    store: z
      .strictObject({
        path: z.string().default('./data').describe('Folder for what must survive a restart.'),
      })
      .prefault({}),
    log: z
      .strictObject({
        level: z
          .enum(['debug', 'info', 'warn', 'error'])
          .default('info')
          .describe('Least important lines that are logged.'),
        format: z.enum(['auto', 'json', 'pretty']).default('auto').describe('`auto`: pretty on a terminal.'),
      })
      .prefault({}),
  })
  .superRefine(({ cameras, engines, server, modelServer }, context) => {
    for (const { path, message } of [
      ...duplicateCameras(cameras),
      ...(modelServer.enabled ? sharedPorts(server) : []),
      ...camerasWithoutEngine(cameras, engines),
    ])
      context.addIssue({ code: 'custom', path, message })
  })
export type PipelineConfig = Readonly<z.infer<typeof pipelineSchema>>
