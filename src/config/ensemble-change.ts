import { z } from 'zod'

/** Body of `PUT /api/v1/ensemble`. */
export const ensembleChangeSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(128)
    .describe(
      'Model of the repositories that is to analyse the cameras, as `ensemble` in the pipeline file.',
    ),
  trial: z
    .strictObject({
      seconds: z
        .number()
        .min(5)
        .max(3_600)
        .default(30)
        .describe(
          'How long the cameras run on it before it is kept; it is compared for half of that before.',
        ),
      minAgreement: z
        .number()
        .min(0)
        .max(1)
        .default(0.9)
        .describe(
          'Share of detections that both must have in common, on frames that both see; with less it gets no camera. 0 asks for nothing.',
        ),
      maxP99Ratio: z
        .number()
        .min(1)
        .max(100)
        .default(1.1)
        .describe(
          'How many times the p99 of capture to publish may be what it was, of the worst camera; with more it is taken back. 100 allows practically anything.',
        ),
    })
    .prefault({}),
})
/** Another ensemble for the cameras, and how it is tried. */
export type EnsembleChangeRequest = Readonly<z.output<typeof ensembleChangeSchema>>
