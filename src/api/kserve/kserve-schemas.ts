import { z } from 'zod'
import { datatypes } from '../../tensors/element-type.js'

/**
 * Bodies of `/v2` as JSON, for the OpenAPI document: KServe's predict protocol, version 2, with Triton's extensions. Requests are not checked
 * with them: that is done piece by piece, in Triton's words (`infer-body.ts`).
 */

const count = z.number().int().min(0)
const parameters = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
const shape = z.array(z.number().int()).describe('`-1` in metadata: any size.')
const datatype = z.enum(datatypes)

export const kserveErrorSchema = z
  .object({ error: z.string() })
  .describe('An error of `/v2`, in the form of Triton.')

export const serverMetadataSchema = z.object({
  name: z.string(),
  version: z.string(),
  extensions: z.array(z.string()).describe('Extensions of the protocol that are served.'),
})

const tensorMetadataSchema = z.object({ name: z.string(), datatype, shape })

export const modelMetadataSchema = z.object({
  name: z.string(),
  versions: z.array(z.string()).describe('Versions that are loaded.'),
  platform: z.string(),
  inputs: z.array(tensorMetadataSchema),
  outputs: z.array(tensorMetadataSchema),
})

export const modelConfigurationSchema = z
  .looseObject({ name: z.string(), platform: z.string(), backend: z.string(), max_batch_size: count })
  .describe('Configuration of a model: `ModelConfig` of Triton, by the names of its fields.')

const durationSchema = z.object({ count, ns: count.describe('All of them together, nanoseconds.') })

export const statisticsSchema = z.object({
  model_stats: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      last_inference: z.number().describe('Of the last request, milliseconds since 1970.'),
      inference_count: count.describe('Inferences; a batch of eight counts for eight.'),
      execution_count: count.describe('Runs of the model.'),
      inference_stats: z.record(z.string(), durationSchema),
      response_stats: z.looseObject({}),
      batch_stats: z.array(
        z.object({
          batch_size: count,
          compute_input: durationSchema,
          compute_infer: durationSchema,
          compute_output: durationSchema,
        }),
      ),
      memory_usage: z.array(z.looseObject({ type: z.string(), byte_size: count })),
    }),
  ),
})

const data = z
  .array(z.unknown())
  .describe('Elements in row-major order, flat or nested as the shape. Binary tensors have none.')

export const inferRequestSchema = z
  .object({
    id: z.string().optional().describe('Comes back in the answer.'),
    parameters: parameters
      .optional()
      .describe(
        '`priority`, `timeout` (microseconds), `sequence_id`, `sequence_start`, `sequence_end`, `binary_data_output`, and those of the model.',
      ),
    inputs: z.array(
      z.object({
        name: z.string(),
        datatype,
        shape: z.array(count),
        parameters: parameters
          .optional()
          .describe(
            '`binary_data_size` in place of `data`: bytes behind the JSON; or `shared_memory_region`.',
          ),
        data: data.optional(),
      }),
    ),
    outputs: z
      .array(
        z.object({
          name: z.string(),
          parameters: parameters
            .optional()
            .describe('`binary_data`, `classification` (so many classes), `shared_memory_region`.'),
        }),
      )
      .optional()
      .describe('Outputs that are wanted; absent: all.'),
  })
  .describe(
    'An inference. Binary tensors follow the JSON, whose length `Inference-Header-Content-Length` says then.',
  )

export const inferResponseSchema = z
  .object({
    id: z.string().optional(),
    model_name: z.string(),
    model_version: z.string(),
    parameters: parameters.optional(),
    outputs: z.array(
      z.object({
        name: z.string(),
        datatype,
        shape: z.array(count),
        parameters: parameters.optional(),
        data: data.optional(),
      }),
    ),
  })
  .describe('What the model gave.')

export const indexRequestSchema = z.object({
  ready: z.boolean().optional().describe('Only models that serve.'),
})

export const indexSchema = z.array(
  z.object({
    name: z.string(),
    version: z.string().optional(),
    state: z.enum(['UNKNOWN', 'READY', 'UNAVAILABLE', 'LOADING', 'UNLOADING']).optional(),
    reason: z.string().optional().describe('Why it does not serve.'),
  }),
)

export const loadRequestSchema = z.object({
  parameters: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      '`config`: JSON in place of config.pbtxt; `file:1/model.onnx`: a file in base64, which needs `config`.',
    ),
})

export const unloadRequestSchema = z.object({
  parameters: z.object({ unload_dependents: z.boolean().optional() }).optional(),
})

const oneOrMore = z.union([z.string(), z.array(z.string()), z.null()])

export const traceSettingsSchema = z
  .record(z.string(), oneOrMore)
  .describe('`trace_file`, `trace_level`, `trace_rate`, `trace_count`, `log_frequency`; null sets one back.')

export const logSettingsSchema = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
  .describe('`log_verbose_level` and the other settings of the log of the model server.')

export const sharedMemoryStatusSchema = z.array(
  z.object({ name: z.string(), key: z.string(), offset: count, byte_size: count }),
)

export const sharedMemoryRegisterSchema = z.object({
  key: z.string().describe('Name of the region in `/dev/shm`, as of `shm_open`.'),
  offset: count.optional(),
  byte_size: count,
})

export const nothingSchema = z.array(z.never()).describe('There are none.')
