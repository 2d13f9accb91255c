import { z } from 'zod'
import { optionsSchema } from './provider-sections.js'

export const executionProviders = ['cuda', 'tensorrt', 'webgpu', 'cpu'] as const
export type ExecutionProvider = (typeof executionProviders)[number]

/** GPUs by number, or all that there are. */
export type Devices = 'auto' | readonly number[]

const deviceSchema = z.number().int().min(0)

const devicesSchema = z.union([z.literal('auto'), z.array(deviceSchema).min(1).max(64)], {
  error: 'must be auto, or a list of numbers of GPUs, such as [0, 1]',
})

/** Scheduling of the camera path; what is absent follows from the provider that runs: see docs/architecture.md. */
export const inferenceSchema = z
  .strictObject({
    providers: z
      .array(z.enum(executionProviders))
      .min(1)
      .default(['cuda', 'cpu'])
      .describe('Execution providers, tried in this order.'),
    devices: devicesSchema
      .optional()
      .describe(
        'GPUs for cuda and tensorrt, by number; `auto`: all there are. Cameras and models are spread over them, an engine at least for each. Default: `[0]`.',
      ),
    deviceId: deviceSchema
      .optional()
      .describe('Replaced by `devices`: `deviceId: 1` is read as `devices: [1]`.'),
    instances: z
      .number()
      .int()
      .min(1)
      .max(64)
      .optional()
      .describe('Sessions side by side. Default: cores on CPU, 2 on a GPU.'),
    intraOpThreads: z.number().int().min(1).max(256).default(1).describe('Threads in one session, on CPU.'),
    maxBatchSize: z
      .number()
      .int()
      .min(1)
      .max(256)
      .optional()
      .describe('Most frames in one run. Default: 1 on CPU, 8 on a GPU.'),
    batchSizes: z
      .array(z.number().int().min(1).max(256))
      .min(1)
      .max(8)
      .optional()
      .describe(
        'Sizes that batches are filled up to on cuda and tensorrt, where a session takes one; each has a session of its own. Default: `preferred_batch_size` of the model, else 1, 4, 16 and so on up to the largest batch.',
      ),
    cuda: optionsSchema('cuda')
      .optional()
      .describe('Options of the CUDA provider, by their names in ONNX Runtime; they need the package koffi.'),
    tensorrt: optionsSchema('tensorrt')
      .optional()
      .describe(
        'Options of the TensorRT provider, by their names in ONNX Runtime; they need the package koffi.',
      ),
    pinnedMemory: z
      .boolean()
      .default(false)
      .describe(
        'Frames for cuda and tensorrt lie in memory that the card reads by itself; needs the package koffi. So it is wherever an option of theirs is set.',
      ),
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
    retrySeconds: z
      .number()
      .min(0.1)
      .max(86_400)
      .default(30)
      .describe(
        'Until a provider that is installed and fails is tried again, while another one runs the models; each wait is twice the one before, up to 30 times the first.',
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
  .superRefine(({ batchSizes = [], maxBatchSize, devices, deviceId }, context) => {
    for (const { path, message } of deviceFaults(devices, deviceId))
      context.addIssue({ code: 'custom', path, message })
    const beyond = batchSizes.find((size) => size > (maxBatchSize ?? size))
    if (beyond !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['batchSizes'],
        message: `${beyond} is more than maxBatchSize, which is ${maxBatchSize}`,
      })
  })
export type InferenceConfig = Readonly<z.infer<typeof inferenceSchema>>

/** GPUs that are asked for. */
export function devicesOf({ devices, deviceId }: Pick<InferenceConfig, 'devices' | 'deviceId'>): Devices {
  return devices ?? [deviceId ?? 0]
}

function deviceFaults(
  devices: Devices | undefined,
  deviceId: number | undefined,
): { path: (string | number)[]; message: string }[] {
  const beside = `must not stand beside devices, which takes its place: leave deviceId out`
  const list = devices === undefined || devices === 'auto' ? [] : devices
  return [
    ...(devices === undefined || deviceId === undefined ? [] : [{ path: ['deviceId'], message: beside }]),
    ...list.flatMap((device, index) => {
      const first = list.indexOf(device)
      if (first === index) return []
      return [
        { path: ['devices', index], message: `GPU ${device} is devices[${first}] already; write it once` },
      ]
    }),
  ]
}
