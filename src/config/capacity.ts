import { z } from 'zod'

export const admissionPolicies = ['off', 'warn', 'refuse'] as const
export type AdmissionPolicy = (typeof admissionPolicies)[number]

export const admissionSchema = z
  .enum(admissionPolicies)
  .default('off')
  .describe(
    'What becomes of a camera, added or switched on by the API, for which there is no room (`/api/v1/headroom`): `off` takes it, `warn` takes it and says so, `refuse` does not take it.',
  )

export const latencyObjectiveMsSchema = z
  .number()
  .min(10)
  .max(60_000)
  .default(300)
  .describe(
    'Milliseconds from capture to publish that 99 of 100 results of each camera are to keep; headroom is reckoned by it.',
  )
