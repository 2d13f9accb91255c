import { z } from 'zod'
import { cameraIdSchema } from '../config/camera.js'
import { incompleteSchema } from './past-schemas.js'

const count = z.number().int().min(0)

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

const roomFields = {
  cameras: count
    .nullable()
    .describe('Further cameras; null while it is not known. Cameras that are on their way are taken off.'),
  limitedBy: z.enum(['cpu', 'instances', 'latency']).nullable().describe('What one more would break.'),
  reason: z.string().describe('The same for people, or why it is not known.'),
}

const clusterHeadroomSchema = z
  .strictObject({
    cameras: count
      .nullable()
      .describe(
        'How many may come before the first node has no room: they go to nodes by their ids. Null while the room of a node is not known.',
      ),
    reason: z.string(),
    sum: count.describe('Room of all nodes whose room is known, wherever cameras would go.'),
    nodes: z.array(
      z.strictObject({
        node: z.string(),
        slots: count.describe('Its part of the cameras that come.'),
        ...roomFields,
      }),
    ),
    incomplete: incompleteSchema,
  })
  .describe('Room of all nodes of the cluster; what stands beside it is of the node that was asked.')

export const headroomSchema = z
  .strictObject({
    ...roomFields,
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
    cluster: clusterHeadroomSchema.optional(),
  })
  .describe('Room for more cameras, by what the service measured of itself.')
