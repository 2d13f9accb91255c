import { z } from 'zod'
import { grpcConnectionsSchema } from './grpc-connections.js'
import { redisSchema } from './redis.js'
import { isS3Url, isS3UrlFault, parseS3Url } from './s3-url.js'

const repositorySchema = z
  .string()
  .min(1)
  .superRefine((text, context) => {
    const fault = repositoryFault(text)
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  })

function repositoryFault(text: string): string | undefined {
  if (isS3Url(text)) {
    const place = parseS3Url(text)
    return isS3UrlFault(place) ? `${place.message}: ${place.hint}` : undefined
  }
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text) ?? []
  return scheme === undefined
    ? undefined
    : `${scheme}:// is not read: name a folder, or s3:// for a store that speaks S3`
}

export const modelsSchema = z.strictObject({
  repository: z
    .union([repositorySchema, z.array(repositorySchema).min(1)])
    .default('../models')
    .describe(
      'Folder of models, or a list of folders; relative to this file. `s3://BUCKET/PREFIX` or `s3://https://HOST:PORT/BUCKET/PREFIX`: an object store, mirrored by `models.mirror`.',
    ),
  mirror: z
    .strictObject({
      path: z
        .string()
        .min(1)
        .optional()
        .describe(
          'Folder for what is fetched of repositories in object stores, kept over restarts; default: `repositories` in `store.path`.',
        ),
      fetchesAtATime: z
        .number()
        .int()
        .min(1)
        .max(64)
        .default(4)
        .describe('Objects that are fetched side by side.'),
      refreshSeconds: z
        .number()
        .min(1)
        .max(86_400)
        .default(3_600)
        .describe(
          'After this time of one look into an object store no further object is begun; what came by then is kept, and the next look goes on.',
        ),
    })
    .prefault({}),
  configName: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, 'must be a plain name, without .pbtxt')
    .optional()
    .describe(
      'API clients: models that have `configs/<configName>.pbtxt` are configured by it instead of `config.pbtxt`.',
    ),
  control: z
    .enum(['none', 'poll', 'explicit'])
    .optional()
    .describe(
      'Which models API clients get: `none` loads all at the start, `poll` follows the folder, `explicit` loads `models.load` and what clients ask for. Without it, beside cameras each is loaded when it is first asked for; without cameras it is `none`. Cameras read their model at the start of an engine.',
    ),
  load: z
    .array(z.string().min(1).max(128))
    .default([])
    .describe('With `explicit`: models to load at the start; `*` alone loads all.'),
  loadsAtATime: z
    .number()
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Models that load side by side; default: as many as there are cores, 2 at least. Triton: `--model-load-thread-count`.',
    ),
  exitOnError: z
    .boolean()
    .default(false)
    .describe(
      'End with the reasons, exit code 2, where a model that is to be loaded at the start cannot be. `false` serves the others. Triton: `--exit-on-error`, true there.',
    ),
  strictReadiness: z
    .boolean()
    .default(true)
    .describe(
      '`/v2/health/ready`, `ServerReady` and `grpc.health.v1` say yes only while every model serves that is to. `false` says yes once the start is over, whatever became of the models. Triton: `--strict-readiness`.',
    ),
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
      redis: redisSchema
        .optional()
        .describe(
          'redis:// URL, or a section as of `cache.redis`: answers are kept there instead of in memory, for all services that share it.',
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
/** How repositories in object stores are fetched. */
export type MirrorConfig = ModelsConfig['mirror']

/** The process that answers API clients of the models. */
export const modelServerSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Serve the models to API clients: `/v2` and gRPC.'),
  serverName: z
    .string()
    .min(1)
    .max(64)
    .default('gantry')
    .describe(
      'What `GET /v2` and `ServerMetadata` call the server. Clients that take no other than Triton want `triton` here. Triton: `--id`.',
    ),
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
    .describe(
      'Largest inference request, by HTTP or gRPC. A message by gRPC is put together at once: with more than 64 MiB others may wait for over 100 ms.',
    ),
  maxResponseBytes: z
    .number()
    .int()
    .min(1024)
    .max(2 ** 31 - 1)
    .default(256 * 1024 ** 2)
    .describe('Largest outputs of one request, all together.'),
  sharedMemory: z
    .boolean()
    .default(false)
    .describe(
      'Let clients on this machine pass tensors in shared memory (`/dev/shm`). Whoever may ask can read and overwrite what the user of the service can there, also of other programs. Triton: `--allow-client-shm`.',
    ),
  modelMemoryBytes: z
    .number()
    .int()
    .min(64 * 1024 ** 2)
    .optional()
    .describe(
      'Most memory a model may take by its runs, beyond what it is loaded with; without it, `modelServer.probe.memoryBytes`. One that takes more is unavailable until a client loads it or its files change, and the process starts again without it.',
    ),
  grpc: grpcConnectionsSchema.prefault({}),
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
