import { z } from 'zod'
import { backendNames } from '../repository/supported-config.js'
import { executionProviders } from '../config/inference.js'

const count = z.number().int().min(0)

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
    cluster: z
      .strictObject({
        id: z.string(),
        node: z.string(),
        state: z
          .enum(['joining', 'member', 'cut_off'])
          .describe(
            '`joining` until it knows the cameras and its share of them; `cut_off`: the brokers do not answer, and it goes on with what it has.',
          ),
        reason: z.string(),
        slots: count.describe('Parts in which cameras go over nodes.'),
        held: count.describe('Slots whose cameras run on this node.'),
        cameras: count.describe('Of all nodes; `cameras` of the service are those of this one.'),
        nodes: z
          .array(
            z.strictObject({
              node: z.string(),
              url: z.string().nullable().describe('Where the other nodes reach it; null: it was never told.'),
              version: z.string().nullable().describe('Null of one that has left.'),
              leftAt: z.iso.datetime().nullable().describe('Null of one that is there.'),
            }),
          )
          .readonly()
          .describe(
            'By name: this one, those that were there when the group formed last, and those that have left since this one started. Which has a camera: `node` of the camera.',
          ),
      })
      .nullable()
      .describe("This node's place in its cluster; null where there is none."),
  })
  .describe(
    'Decides the status of `/readyz`: engines do, what ends TLS, whether the model repositories can be read, and in a cluster whether the node has joined. Sinks, cache, stream and cameras are details that never do.',
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
