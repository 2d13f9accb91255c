import { z } from 'zod'
import { blindCauses, coverageStates, type CoverageSpan } from '../vision/coverage.js'

/** A stretch of a camera's time that has ended: value of a record of type `gantry.coverage.v1`. */
export const coverageMessageSchema = z.strictObject({
  cameraId: z.string(),
  from: z.iso.datetime().describe('UTC; where the stretch before ended.'),
  to: z.iso.datetime().describe('UTC.'),
  seconds: z.number().min(0),
  state: z.enum(coverageStates),
  cause: z.enum(blindCauses).nullable().describe('Why it was blind; null where it was watched.'),
})
export type CoverageMessage = Readonly<z.infer<typeof coverageMessageSchema>>

export function coverageMessage({ cameraId, fromMs, toMs, cause }: CoverageSpan): CoverageMessage {
  return {
    cameraId,
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    seconds: (toMs - fromMs) / 1_000,
    state: cause === null ? 'watched' : 'blind',
    cause,
  }
}

/** The same for every repetition: no two spans of a camera begin at the same time. */
export function coverageRecordId({ cameraId, fromMs }: CoverageSpan): string {
  return `${cameraId}/coverage/${fromMs}`
}
