import { z } from 'zod'

/** What a sink did not get: value of a record of type `gantry.gap.v1`, which that sink alone gets. */
export const gapMessageSchema = z.strictObject({
  cameraId: z
    .string()
    .describe('`*` where nothing says any more which cameras they were of; `dropped` is at most then.'),
  sink: z.string().describe('Name of the sink, such as `kafka`.'),
  dropped: z.number().int().min(1).describe('Records that were accepted and will never come.'),
  from: z.iso.datetime().describe('UTC time of capture of the first of them.'),
  to: z.iso.datetime().describe('UTC time of capture of the last of them.'),
  reason: z
    .enum(['retention', 'damaged'])
    .describe(
      '`retention`: the store was full, or they were too old. `damaged`: the file of the store was, and they could not be read.',
    ),
})
export type GapMessage = Readonly<z.infer<typeof gapMessageSchema>>
