import { z } from 'zod'
import { cameraIdSchema, cameraSchema } from '../config/camera.js'
import { backendNames } from '../repository/supported-config.js'
import { executionProviders } from '../config/inference.js'
import { detectionsMessageSchema } from '../messages/detections-message.js'
import { shedCauses } from '../vision/accounting.js'
import { cameraStates, decodeModes, decodePlaces } from '../vision/camera-state.js'

/** Bodies of answers, as published in `/openapi.json`. Requests have their schemas in `config/`. */

const count = z.number().int().min(0)

export const cameraPathSchema = z.strictObject({ id: cameraIdSchema })

const frameCountsSchema = z
  .strictObject({
    received: count,
    inferred: count,
    reused: count.describe('The scene had not changed: the result before was used again.'),
    superseded: count.describe('A newer frame of the camera came first.'),
    suspect: count.describe('The decoder reported damage.'),
    lost: count.describe('Was in an engine that died.'),
    shed: z.strictObject(
      Object.fromEntries(shedCauses.map((cause) => [cause, count])) as Record<
        (typeof shedCauses)[number],
        typeof count
      >,
    ),
  })
  .describe('Frames by fate; every received frame ends in exactly one.')

export const cameraViewSchema = z
  .strictObject({
    id: cameraIdSchema,
    config: cameraSchema.describe('Settings with defaults filled in; credentials in URLs are masked.'),
    persist: z.boolean().describe('Is kept over a restart of the service.'),
    origin: z.enum(['file', 'api']).describe('Where the camera was defined.'),
    status: z.strictObject({
      state: z.enum(cameraStates),
      reason: z.string().describe('Why, for people; empty when all is well.'),
      sinceMs: z.number().describe('Wall time of the last change of state.'),
      attempts: count.describe('Decoder starts since the camera was added.'),
      retryInMs: z.number().optional().describe('Until the next attempt, in state `backoff`.'),
      decode: z
        .strictObject({
          mode: z.enum(decodeModes).describe('What of the stream is decoded now.'),
          reason: z.string().describe('Why, for people; empty where it is as the settings say.'),
          keyFrameGapMs: z
            .number()
            .nullable()
            .describe(
              'From one key frame to the next, about; null while unknown, and where `decode` is `full`.',
            ),
          by: z
            .enum(decodePlaces)
            .describe(
              'Where it is decoded: `cuda-scaled` and `cuda` on an NVIDIA card, with and without scaling there.',
            ),
          byReason: z
            .string()
            .describe(
              'Why not by the hardware that `hwaccel` asks for, or not all of it there; empty where it is as that says.',
            ),
          polledFps: z
            .number()
            .optional()
            .describe('The URL gives one picture for each request, and is asked so many times a second.'),
          track: z
            .string()
            .optional()
            .describe('Which video is shown, of a file or stream that has several (`videoTrack`).'),
        })
        .optional()
        .describe('How the stream is decoded; only while one is.'),
    }),
    stats: z.strictObject({
      inferredFps: z.number().min(0).describe('Frames analysed per second, over ten seconds.'),
      receivedFps: z.number().min(0),
      latencyMs: z
        .strictObject({ p50: z.number(), p99: z.number() })
        .nullable()
        .describe('Capture to publish, over the last results.'),
      frames: frameCountsSchema,
      decoderCpuShare: z.number().min(0).describe('Share of one core the decoder uses.'),
      frozen: z.boolean().describe('The very same picture has come for `frozenAfterMs`.'),
      source: z.strictObject({ widthPx: count, heightPx: count }).nullable(),
    }),
  })
  .describe('A camera, its state and its figures.')

export const admittedCameraSchema = cameraViewSchema.extend({
  warnings: z
    .array(z.string())
    .optional()
    .describe(
      'What is to be known of its being taken on: that there is no room, where `admission` is `warn`.',
    ),
})

export const cameraListSchema = z.strictObject({ items: z.array(cameraViewSchema) })

/** A query holds text; anything but plain digits is left for the schema to refuse. */
const limitText = z.preprocess(
  (given) => (typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : given),
  z.number('must be a whole number, 1 to 1000').int().min(1).max(1000),
)

const timeText = z.iso.datetime({
  offset: true,
  error: 'must be an RFC 3339 time such as 2026-11-20T08:15:30Z',
})

/** Query of the lists of past results. All are text; the times include both ends. */
export const pastQuerySchema = z
  .strictObject({
    camera: cameraIdSchema.optional().describe('Only this camera.'),
    label: z.string().min(1).max(128).optional().describe('Only results in which this label was found.'),
    from: timeText.optional().describe('Not before this time.'),
    to: timeText.optional().describe('Not after this time.'),
    limit: limitText.default(100).describe('Most items of one page, 1 to 1000.'),
    cursor: z.string().min(1).max(512).optional().describe('`nextCursor` of the page before.'),
  })
  .refine((q) => q.from === undefined || q.to === undefined || Date.parse(q.from) <= Date.parse(q.to), {
    path: ['to'],
    message: 'must not be before "from"',
  })

const nextCursor = z
  .string()
  .optional()
  .describe('Give it as `cursor` for the next page; absent on the last.')

export const detectionsPageSchema = z
  .strictObject({ items: z.array(detectionsMessageSchema), nextCursor })
  .describe('Results, newest first.')

export const eventsPageSchema = z
  .strictObject({
    items: z
      .array(z.strictObject({}))
      .max(0)
      .describe('Safety events. None arise in this version: rules are not available yet.'),
    nextCursor,
  })
  .describe('Events, newest first.')

export const snapshotQuerySchema = z.strictObject({
  overlay: z
    .enum(['0', '1', 'false', 'true'])
    .default('0')
    .transform((text) => text === '1' || text === 'true')
    .describe('`1` draws the boxes into the picture, which is analysed for them.'),
  size: z
    .enum(['own', 'analysed'])
    .default('own')
    .describe('`analysed` gives the last analysed picture, at the size that the model saw.'),
})

/** A query holds text; anything but a plain number is left for the schema to refuse. */
const numberText = (least: number, most: number) =>
  z.preprocess(
    (given) => (typeof given === 'string' && /^\d{1,6}(\.\d{1,6})?$/.test(given) ? Number(given) : given),
    z.number(`must be a number, ${least} to ${most}`).min(least).max(most),
  )

export const headroomQuerySchema = z.strictObject({
  like: cameraIdSchema
    .optional()
    .describe('Cameras like this one; absent: like all that are there, on average.'),
  sampleFps: numberText(0.001, 120).optional().describe('Frames that each asks for in a second.'),
  latencyMs: numberText(1, 600_000)
    .optional()
    .describe('Instead of `latencyObjectiveMs` of the pipeline file.'),
})

const usedOf = (what: string) =>
  z.strictObject({ all: z.number(), busy: z.number() }).describe(`${what}, all and busy on average.`)

export const headroomSchema = z
  .strictObject({
    cameras: count
      .nullable()
      .describe('Further cameras; null while it is not known. Cameras that are on their way are taken off.'),
    limitedBy: z.enum(['cpu', 'instances', 'latency']).nullable().describe('What one more would break.'),
    reason: z.string().describe('The same for people, or why it is not known.'),
    objectiveMs: z.number().describe('For 99 of 100 results of each camera, capture to publish.'),
    now: z
      .strictObject({
        measuredAt: z.string().describe('End of the half minute that was measured.'),
        cameras: count.describe('Cameras that were measured.'),
        comingCameras: count.describe('Switched on, and not among them yet.'),
        cores: usedOf('Cores, with other programs and without models of API clients, which give way'),
        instances: usedOf('Inference instances'),
        p99Ms: z.number().describe('Of the camera that has the worst.'),
      })
      .nullable(),
    perCamera: z
      .strictObject({
        framesPerSecond: z.number(),
        decoderCores: z.number(),
        cpuMsPerFrame: z.number().describe('Of engines and control, for each frame that is analysed.'),
        runMs: z.number().describe('What a frame takes of an instance.'),
      })
      .nullable(),
    predicted: z
      .strictObject({ busyCores: z.number(), busyInstances: z.number(), p99Ms: z.number() })
      .nullable()
      .describe('With that many more.'),
  })
  .describe('Room for more cameras, by what the service measured of itself.')

export const acceptedFrameSchema = z.strictObject({
  seq: z.number().int().min(1).describe('Number of the frame; its result carries the same.'),
})

const linkState = z.enum(['connecting', 'up', 'down', 'stopped'])

const detectorSchema = z.strictObject({
  model: z.strictObject({ name: z.string(), version: z.string() }).describe('What records name.'),
  detector: z
    .strictObject({ name: z.string(), version: z.string() })
    .describe('The model that runs; another one on a GPU where the ensemble has gantry.gpu_model.'),
  labels: z.array(z.string()),
  head: z.string().describe('Detector head, as recognised or configured.'),
  provider: z
    .enum([...executionProviders, ...backendNames])
    .describe(
      'Execution provider of the model file; the backend where the detector is none, such as kserve.',
    ),
  deviceId: count.optional().describe('GPU that it runs on, where the provider takes one by its number.'),
  providerNotes: z.array(z.string()).describe('Why a provider earlier in the order does not run.'),
  providerFailures: z
    .array(z.string())
    .describe('Those of the notes that are faults: the provider is installed.'),
  instances: count,
  instancesReady: count.describe('Those that are up: on a GPU the first one runs while the others start.'),
  maxBatchSize: count,
  batchSizes: z
    .array(
      z.strictObject({
        size: count,
        ms: z.number(),
        memoryBytes: count
          .optional()
          .describe('Memory of the GPU that an instance took for it, where the driver tells.'),
      }),
    )
    .optional()
    .describe(
      'Where a session takes one size of batch (cuda, tensorrt): the sizes that batches are filled up to now, and what a run of each takes.',
    ),
  float16: z
    .strictObject({
      model: z.string(),
      isTaken: z.boolean(),
      size: count.describe('Of the batch that both were measured with.'),
      ms: z.number().describe('In float32.'),
      float16Ms: z.number().nullable(),
      reason: z.string().describe('Why the model in float16 does not run; else empty.'),
    })
    .optional()
    .describe(
      'On a GPU, of a detector with gantry.float16_model: what a run took in both precisions, and which is taken.',
    ),
  batchSizesToCome: z
    .array(count)
    .optional()
    .describe('Sizes that have not run yet: cameras begin with the smallest, and batches get these later.'),
  scoreFault: z
    .strictObject({ boxes: count.describe('That were left out.'), reason: z.string() })
    .optional()
    .describe(
      'The model gives numbers that are no scores (logits, percentages, none at all): why, and what to set.',
    ),
  input: z.strictObject({ widthPx: count, heightPx: count }),
  inputFrom: z
    .string()
    .describe(
      'What decided the size of the input; of a model that leaves it open, how many cameras have the shape that it runs at, or why it does not.',
    ),
})

export const readinessSchema = z
  .strictObject({
    ready: z.boolean(),
    reasons: z
      .array(z.string())
      .describe(
        'Why the service is not ready; and while it is, which GPU is left, which installed provider does not run the models and why, whose model gives no scores, and how many sizes of batches are warm while some are to come.',
      ),
    engines: z.array(
      z.strictObject({
        index: count,
        state: z
          .enum(['starting', 'ready', 'restarting', 'failed', 'stopped', 'left'])
          .describe('`left`: its GPU failed and is tried again later; engines on others have its cameras.'),
        device: z
          .number()
          .int()
          .nullable()
          .describe('GPU that it is bound to, where there are several; null where there are not.'),
        pid: z.number().int().nullable(),
        restarts: count,
        reason: z.string(),
        detector: detectorSchema.nullable(),
        cameras: count,
      }),
    ),
    sinks: z.array(
      z.strictObject({
        name: z.string(),
        state: linkState,
        reason: z.string(),
        queued: count.describe('Records waiting for delivery.'),
        delivered: count,
        dropped: count,
        filtered: count.describe('Results that the filter of the sink left out.'),
        rejected: z
          .record(z.string(), count)
          .describe('Of the dropped: records that the far side refuses for good, by reason.'),
      }),
    ),
    modelServer: z
      .strictObject({
        state: z
          .enum(['idle', 'starting', 'ready', 'restarting', 'failed', 'stopped'])
          .describe('`idle`: nobody has asked for a model yet; who does starts it.'),
        pid: z.number().int().nullable(),
        restarts: count,
        reason: z.string(),
        models: z
          .strictObject({ total: count, ready: count })
          .describe('Models that are to serve, and those of them that do.'),
        grpcPort: z.number().int().nullable().describe('Where gRPC listens; null while it does not.'),
        providerFailures: z
          .array(z.string())
          .describe('Why models do not run on a provider that is installed, each once.'),
      })
      .nullable()
      .describe('The process that answers /v2 and gRPC; it never decides whether the service is ready.'),
    tlsDoor: z
      .strictObject({
        state: z.enum(['starting', 'ready', 'restarting', 'failed', 'stopped']),
        pid: z.number().int().nullable(),
        restarts: count,
        reason: z.string(),
      })
      .nullable()
      .describe('The process that ends TLS on the ports of HTTP; null without `server.tls`.'),
    stream: z
      .strictObject({
        state: z
          .enum(['idle', 'starting', 'ready', 'restarting', 'failed', 'stopped'])
          .describe('`idle`: nobody has connected yet; who does starts it.'),
        pid: z.number().int().nullable(),
        restarts: count,
        reason: z.string(),
        clients: count,
      })
      .describe('The process that serves WebSocket clients; it never decides whether the service is ready.'),
    cache: z.strictObject({ backend: z.enum(['memory', 'redis']), state: linkState, reason: z.string() }),
    store: z
      .strictObject({
        state: z.enum(['starting', 'up', 'degraded', 'stopped']),
        reason: z.string(),
        bytes: z.number().int().min(0).describe('What stored results and events take.'),
      })
      .describe('`degraded`: results are published without being stored, and are lost with the process.'),
    cameras: z.strictObject({ total: count, byState: z.record(z.string(), count) }),
  })
  .describe(
    'Decides the status of `/readyz`: engines do, what ends TLS, and whether the model repositories can be read. Sinks, cache, stream and cameras are details that never do.',
  )
export type ReadinessView = Readonly<z.infer<typeof readinessSchema>>

export const readinessStatusSchema = readinessSchema
  .pick({ ready: true })
  .describe('What anyone may know of the readiness.')

/** What `/readyz` answers: all of it to who has the token, or asks where none is set. */
export const readinessAnswerSchema = z.union([readinessSchema, readinessStatusSchema])

const watts = z.number().min(0).nullable()

const gpuSchema = z
  .strictObject({
    index: count.describe('Number of the card, as nvidia-smi counts.'),
    uuid: z.string().describe('As in `gpu_uuid` of its metrics.'),
    name: z.string(),
    utilization: z.number().min(0).nullable().describe('Share of the time in which it had work, 0-1.'),
    memoryUsedBytes: count.nullable().describe('By whatever program.'),
    memoryTotalBytes: count.nullable(),
    powerWatts: watts,
    powerLimitWatts: watts,
    energyJoules: z.number().min(0).nullable().describe('Since the service began, by its power.'),
    reason: z.string().describe('Why figures are missing that there were; empty when all is well.'),
  })
  .describe('A graphics card of NVIDIA; null is what its driver does not tell, or not now.')

export const statusSchema = readinessSchema
  .extend({
    name: z.string().describe('Name of the pipeline.'),
    version: z.string(),
    nowMs: z
      .number()
      .describe('Wall time of the service, in ms since the epoch: the clock of every time that it tells.'),
    gpus: z
      .array(gpuSchema)
      .describe('What nvidia-smi tells; empty where it is not there, or tells of no card.'),
    kafka: z
      .strictObject({
        brokers: z.array(z.string()).describe('As host:port.'),
        topic: z.string().describe('Of the results.'),
        security: z
          .enum(['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'])
          .describe('How a client has to connect: `security.protocol`.'),
        saslMechanism: z.string().nullable(),
      })
      .nullable()
      .describe('Where records go; null where no broker is configured.'),
    webhooks: z
      .array(
        z.strictObject({
          name: z.string(),
          origin: z.string().describe('Scheme, host and port of its URL.'),
          signed: z.boolean().describe('Bodies bear a signature (Standard Webhooks).'),
          batches: z.boolean().describe('Bodies are lists of CloudEvents.'),
        }),
      )
      .describe('Where records are posted to.'),
    mqtt: z
      .array(
        z.strictObject({
          name: z.string(),
          broker: z.string().describe('As mqtt:// or mqtts:// URL.'),
          wantsLogin: z.boolean().describe('The service logs in there.'),
          topicPrefix: z
            .string()
            .describe('Start of `cameras/{id}/detections`, `cameras/{id}/state` and `status`.'),
          homeAssistant: z.boolean().describe('Home Assistant is told of the cameras.'),
        }),
      )
      .describe('Brokers of MQTT that records go to.'),
  })
  .describe('What the service runs and how it is doing.')

export const healthSchema = z.strictObject({ status: z.literal('ok') })
