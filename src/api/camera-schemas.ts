import { z } from 'zod'
import { cameraIdSchema, cameraSchema } from '../config/camera.js'
import { shedCauses } from '../vision/accounting.js'
import { cameraStates, decodeModes, decodePlaces } from '../vision/camera-state.js'

/** Bodies of answers about cameras, as published in `/openapi.json`. Requests have their schemas in `config/`. */
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
    node: z
      .string()
      .nullable()
      .optional()
      .describe(
        'Of a cluster: the node that has the camera; null while none has. Absent where there is no cluster.',
      ),
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

export const acceptedFrameSchema = z.strictObject({
  seq: z.number().int().min(1).describe('Number of the frame; its result carries the same.'),
})
