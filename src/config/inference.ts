import { z } from 'zod'

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
  stepTimeoutMs: z
    .number()
    .int()
    .min(1)
    .max(60_000)
    .default(1_000)
    .describe(
      'Longest that the steps of an ensemble behind its detection head may take for a frame; its detections leave then without what late steps say of them.',
    ),
  scoreThreshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.3)
    .describe(
      'Detections under this are not reported. `gantry.score_threshold` of the ensemble comes first, as with the next two.',
    ),
  iouThreshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe('Overlap above which NMS keeps only the best box of a class.'),
  maxDetections: z.number().int().min(1).max(10_000).default(300).describe('Most detections of one frame.'),
})
export type InferenceConfig = Readonly<z.infer<typeof inferenceSchema>>
