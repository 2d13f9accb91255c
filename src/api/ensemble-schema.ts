import { z } from 'zod'
import { ensembleOutcomes, ensembleStates } from './gantry.js'

/** What `/api/v1/ensemble` answers. */
export const ensembleSchema = z
  .strictObject({
    name: z
      .string()
      .describe('In force: what cameras run but for a trial, and what an engine that dies comes up with.'),
    configured: z
      .string()
      .describe('`ensemble` of the pipeline file, which the next start of the service takes.'),
    state: z
      .enum(ensembleStates)
      .describe(
        '`loading`: the other one is being loaded; `comparing`: it gets copies of frames; `trial`: the cameras run on it.',
      ),
    to: z
      .strictObject({ name: z.string(), since: z.iso.datetime().describe('When the change was asked for.') })
      .nullable()
      .describe('What is to take its place; null while nothing is.'),
    last: z
      .strictObject({
        name: z.string(),
        outcome: z
          .enum(ensembleOutcomes)
          .describe(
            '`taken_back`: it was worse, or failed; `refused`: it could not be loaded, and no frame saw it.',
          ),
        reason: z.string().describe('With figures, for people.'),
        agreement: z
          .number()
          .min(0)
          .max(1)
          .nullable()
          .describe('Share of detections in common; null where no frame was compared.'),
        comparedFrames: z.number().int().min(0),
        p99Ms: z
          .strictObject({ before: z.number().nullable(), after: z.number().nullable() })
          .describe('Of capture to publish, of the worst camera; null where none was measured.'),
        at: z.iso.datetime(),
      })
      .nullable()
      .describe('How the last change ended; null before the first.'),
  })
  .describe('The ensemble of the cameras, and the one that is tried on them.')
