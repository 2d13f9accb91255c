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
    .enum(['retention', 'damaged', 'store_lost'])
    .describe(
      '`retention`: the store was full, or they were too old. `damaged`: the file of the store was, and they could not be read. `store_lost`: a node of a cluster began without the store that it had; what was accepted between `from` and `to` may be missing, and `dropped` is what waited when it was last known, at least 1.',
    ),
})
export type GapMessage = Readonly<z.infer<typeof gapMessageSchema>>
