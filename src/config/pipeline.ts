import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { cameraSchema } from './camera.js'
import { admissionSchema, latencyObjectiveMsSchema } from './capacity.js'
import { clusterKafka, clusterSchema, type ClusterConfig } from './cluster.js'
import { cameraNetworksSchema } from './camera-networks.js'
import { inferenceSchema } from './inference.js'
import { modelServerSchema, modelsSchema } from './models.js'
import { cacheSchema } from './outputs.js'
import { serverSchema } from './server.js'
import { sharedSinkNames, sinksSchema, type SinksConfig } from './sinks.js'
import { storeSchema } from './store.js'
import { tracingSchema } from './tracing.js'

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

function errorsNobodySees(
  { exitOnError, control }: z.infer<typeof modelsSchema>,
  engines: number,
): { path: string[]; message: string }[] {
  if (!exitOnError || control !== undefined || engines === 0) return []
  const message =
    'needs models.control (none, poll or explicit): without it, beside cameras, models load when they are first asked for, none at the start'
  return [{ path: ['models', 'exitOnError'], message }]
}

/** Both say how much may wait. */
function boundsTwice(
  { kafka }: Pick<SinksConfig, 'kafka'>,
  { maxBytes, maxAge }: z.infer<typeof storeSchema>,
): { path: string[]; message: string }[] {
  if (maxBytes === undefined && maxAge === undefined) return []
  const message = 'is replaced by store.maxBytes and store.maxAge, which are given too: leave it out'
  return (['maxQueuedRecords', 'maxQueuedBytes'] as const)
    .filter((name) => kafka?.[name] !== undefined)
    .map((name) => ({ path: ['sinks', 'kafka', name], message }))
}

/** What a node of a cluster needs beside its own section. */
function clusterFaults(
  cluster: ClusterConfig | undefined,
  engines: number,
  { kafka }: SinksConfig,
): { path: string[]; message: string }[] {
  if (cluster === undefined) return []
  const { cameras, cameraErrors } = cluster.topics
  const ofResults: readonly unknown[] = Object.values(kafka?.topics ?? {})
  return [
    ...(cameras === cameraErrors
      ? [{ path: ['cluster', 'topics', 'cameraErrors'], message: 'must be another topic than cameras' }]
      : []),
    ...(ofResults.includes(cameras)
      ? [
          {
            path: ['cluster', 'topics', 'cameras'],
            message: 'must be another topic than those of sinks.kafka',
          },
        ]
      : []),
    ...(clusterKafka(cluster, kafka)
      ? []
      : [
          {
            path: ['cluster', 'kafka'],
            message: 'missing: no brokers are named, neither here nor in sinks.kafka',
          },
        ]),
    ...(engines > 0
      ? []
      : [{ path: ['engines'], message: 'must be at least 1: a node of a cluster runs cameras' }]),
  ]
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
      .describe(
        'Engine processes the cameras are spread over; 0 for a model server without cameras. With several GPUs each has as many, one at least.',
      ),
    maxConcurrentConnects: z
      .number()
      .int()
      .min(1)
      .max(256)
      .optional()
      .describe('Decoders of an engine that may be starting at once; default: twice the cores, at least 8.'),
    decoding: z
      .strictObject({
        gpuMemoryShare: z
          .number()
          .min(0)
          .max(1)
          .default(0.25)
          .describe(
            "Share of a GPU's memory that decoders of cameras may take together, where `nvidia-smi` tells it; cameras beyond it are decoded in software. 0: all of them.",
          ),
      })
      .prefault({}),
    mediaRoot: z
      .string()
      .optional()
      .describe('Folder that file cameras must lie in; default: the folder of this file.'),
    cameras: z.array(cameraSchema).max(1024).default([]),
    cameraNetworks: cameraNetworksSchema.prefault({}),
    admission: admissionSchema,
    latencyObjectiveMs: latencyObjectiveMsSchema,
    tracking: z.strictObject({}).prefault({}).describe('No settings in this version.'),
    rules: z
      .array(z.never('rules are not available in this version: leave the list empty'))
      .default([])
      .describe('None in this version: leave the list empty.'),
    sinks: sinksSchema.prefault({}),
    cluster: clusterSchema
      .optional()
      .describe('This service is one of several nodes that share the cameras. Absent: it has them alone.'),
    cache: cacheSchema.prefault({}),
    store: storeSchema.prefault({}),
    tracing: tracingSchema.prefault({}),
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
  .superRefine(({ cameras, cluster, engines, server, models, modelServer, sinks, store }, context) => {
    for (const { path, message } of [
      ...duplicateCameras(cameras),
      ...(modelServer.enabled ? sharedPorts(server) : []),
      ...camerasWithoutEngine(cameras, engines),
      ...errorsNobodySees(models, engines),
      ...boundsTwice(sinks, store),
      ...sharedSinkNames(sinks),
      ...clusterFaults(cluster, engines, sinks),
    ])
      context.addIssue({ code: 'custom', path, message })
  })
export type PipelineConfig = Readonly<z.infer<typeof pipelineSchema>>

/** `maxConcurrentConnects`, or what goes for this machine: a decoder that starts is busy for a tenth of a second, and waits for its camera then. */
export function connectsAtOnce(config: Pick<PipelineConfig, 'maxConcurrentConnects'>): number {
  return config.maxConcurrentConnects ?? Math.max(8, 2 * availableParallelism())
}
