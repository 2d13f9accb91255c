import { z } from 'zod'
import { requestDurations } from '../runtime/statistics.js'

const count = z.number().int().min(0)
const milliseconds = z.number().min(0)

const durationSchema = z.strictObject({
  count,
  ms: milliseconds.describe('Of all of them together.'),
})

const latencySchema = z
  .strictObject({ p50: milliseconds, p99: milliseconds })
  .nullable()
  .describe('From arrival to answer, read from the buckets of the histogram; null before the first.')

const tensorsSchema = z.array(
  z.strictObject({
    name: z.string(),
    datatype: z.string().describe('Of KServe v2, such as `FP32`.'),
    shape: z
      .array(z.number().int())
      .describe('As requests have it, with the dimension of batches; -1 is a free size.'),
  }),
)

const workSchema = z
  .strictObject({
    waiting: count.describe('Requests that wait for an instance now.'),
    items: count.describe('Items inferred, cache hits left out.'),
    runs: count.describe('Runs, cache hits left out.'),
    lastMs: z.number().nullable().describe('Wall time of the last request; null before the first.'),
    durations: z
      .strictObject(
        Object.fromEntries(requestDurations.map((name) => [name, durationSchema])) as Record<
          (typeof requestDurations)[number],
          typeof durationSchema
        >,
      )
      .describe('As `inference_stats` of `/v2/models/stats`, in milliseconds.'),
    latencyMs: latencySchema,
    failures: z
      .record(z.string(), count)
      .describe('Failed requests by reason, as in `nv_inference_request_failure`.'),
    batches: z
      .array(z.strictObject({ size: count, runs: count, inferMs: milliseconds }))
      .describe('Runs by their size, and the time of the model in all of them.'),
  })
  .nullable()
  .describe('What API clients asked of it since it was loaded; null while it does not serve.')

const versionSchema = z.strictObject({
  version: z.string().describe('Empty where none is known.'),
  state: z.enum(['', 'UNKNOWN', 'READY', 'UNAVAILABLE', 'LOADING', 'UNLOADING']),
  reason: z.string().describe('Why it does not serve; empty where it does.'),
  loadMs: milliseconds.nullable().describe('What its load took; null while it does not serve.'),
  instances: z
    .strictObject({ count, ready: count })
    .nullable()
    .describe('Null of an ensemble, which has none of its own, and while it does not serve.'),
  places: z.array(z.string()).describe('Providers that it runs on, with the number of the GPU: `cuda:0`.'),
  failedPlaces: z
    .array(z.string())
    .describe('Providers that are installed and do not run it, each with the reason.'),
  work: workSchema,
})

const cameraWorkSchema = z.strictObject({
  version: z.string(),
  frames: count,
  runs: count,
  waiting: count.describe('Frames that wait for an instance now.'),
  failures: count,
  inferMs: milliseconds.describe('Of the model alone, in all frames.'),
  latencyMs: latencySchema,
})

/** What `/api/v1/models` answers. */
export const modelListSchema = z
  .strictObject({
    server: z
      .strictObject({
        state: z
          .enum(['off', 'idle', 'starting', 'ready', 'restarting', 'failed', 'stopped'])
          .describe(
            '`off`: the service has no model server; `idle`: nobody has asked it yet, and a request to `/v2` starts it.',
          ),
        reason: z.string(),
        control: z
          .enum(['none', 'poll', 'explicit', 'asked'])
          .nullable()
          .describe(
            'When models are loaded: `models.control`; `asked`: each when it is first asked for. Only with `explicit` may clients load and unload.',
          ),
        isTold: z
          .boolean()
          .describe('Whether the model server tells now; else `items` are the models of cameras alone.'),
      })
      .describe('The process that serves API clients. Asking here does not start it.'),
    ensemble: z.string().describe('What the cameras run.'),
    items: z.array(
      z.strictObject({
        name: z.string(),
        platform: z.string().describe('Empty while no version serves.'),
        maxBatchSize: count.nullable().describe('0: it takes no batches.'),
        inputs: tensorsSchema,
        outputs: tensorsSchema,
        steps: z.array(z.string()).describe('Models that an ensemble runs.'),
        isCached: z.boolean().describe('Answers are looked up in the response cache.'),
        versions: z.array(versionSchema).describe('Lowest first.'),
        forCameras: z
          .array(cameraWorkSchema)
          .describe('What engines did with it for cameras, by version; empty where none use it.'),
      }),
    ),
  })
  .describe('Models, by name, and how they do.')
