import { z } from 'zod'

/** Which results a sink gets, and how many. */
export const sinkFilterSchema = z.strictObject({
  cameras: z
    .array(z.string().min(1).max(128))
    .max(1024)
    .default([])
    .describe('Ids of the cameras whose results are sent; empty, or `*`: of all.'),
  labels: z
    .array(z.string().min(1).max(128))
    .max(256)
    .default([])
    .describe('Labels to send; empty: all. A result in which none is left is not sent.'),
  minScore: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe('Detections under this score are left out. A result in which none is left is not sent.'),
  maxPerMinute: z
    .number()
    .int()
    .min(1)
    .max(60_000)
    .optional()
    .describe('Most results of each camera in any minute; further ones are counted and not sent.'),
})
export type SinkFilterConfig = Readonly<z.infer<typeof sinkFilterSchema>>

/**
 * What sinks that may stand in a list have in common.
 *
 * @param fallback - name where the settings give none
 * @param waitsFor - what `timeoutMs` bounds, for people
 */
export function commonSinkFields(fallback: string, waitsFor: string) {
  return {
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be a name of letters, digits, ".", "_" and "-"')
      .optional()
      .describe(
        `Name in metrics, log and readiness; default \`${fallback}\`. In a list each needs one of its own.`,
      ),
    filter: sinkFilterSchema.prefault({}),
    timeoutMs: z.number().int().min(100).max(120_000).default(10_000).describe(waitsFor),
  }
}
