import { z } from 'zod'
import { cameraIdSchema } from '../config/camera.js'
import { blindCauses, coverageStates } from '../vision/coverage.js'
import { incompleteSchema } from './past-schemas.js'

const time = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time such as 2026-11-20T08:15:30Z' })

/** Longest stretch of one question: more is asked for in parts. */
const longestMs = 31 * 24 * 3_600_000

/** What is asked for without a time: the hour until now. */
const usualMs = 3_600_000

export const coverageQuerySchema = z
  .strictObject({
    cameraId: cameraIdSchema.optional().describe('Only this camera.'),
    from: time.optional().describe('Not before this time; absent: one hour before `to`.'),
    to: time.optional().describe('Not after this time; absent or to come: now.'),
    spans: z
      .enum(['0', '1', 'false', 'true'])
      .default('1')
      .transform((text) => text === '1' || text === 'true')
      .describe('`0`: sums alone, over more time.'),
  })
  .refine((q) => q.from === undefined || q.to === undefined || Date.parse(q.from) <= Date.parse(q.to), {
    path: ['to'],
    message: 'must not be before "from"',
  })
  .refine(
    (q) => q.from === undefined || q.to === undefined || Date.parse(q.to) - Date.parse(q.from) <= longestMs,
    {
      path: ['from'],
      message: 'must be at most 31 days before "to": ask in parts',
    },
  )

/** @param nowMs - wall time. */
export function coverageRange(
  { from, to }: Readonly<{ from?: string | undefined; to?: string | undefined }>,
  nowMs: number,
): Readonly<{ fromMs: number; toMs: number }> {
  const toMs = Math.min(nowMs, to === undefined ? nowMs : Date.parse(to))
  const fromMs = from === undefined ? toMs - usualMs : Math.min(toMs, Date.parse(from))
  return { fromMs: Math.max(fromMs, toMs - longestMs), toMs }
}

const seconds = z.number().min(0)

const causeSchema = z.enum(blindCauses).nullable().describe('Why it was blind; null where it was watched.')

const coverageSpanSchema = z.strictObject({
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  state: z.enum(coverageStates),
  cause: causeSchema,
})

export const coverageSchema = z
  .strictObject({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    items: z.array(
      z.strictObject({
        cameraId: cameraIdSchema,
        from: z.iso
          .datetime()
          .describe('When what is known begins: later than asked for where the camera is newer.'),
        to: z.iso.datetime().describe('When it ends: earlier than asked for where the camera was removed.'),
        watchedSeconds: seconds,
        blindSeconds: seconds,
        blindSecondsByCause: z
          .partialRecord(z.enum(blindCauses), seconds)
          .describe('Causes that occurred. Docs: coverage.md.'),
        last: z
          .strictObject({ since: z.iso.datetime(), state: z.enum(coverageStates), cause: causeSchema })
          .describe(
            'How it was at the end of that time, which is now where `to` is; `since` may lie before `from`.',
          ),
        spans: z
          .array(coverageSpanSchema)
          .nullable()
          .describe('In order, without hole or overlap; null with `spans=0`.'),
      }),
    ),
    incomplete: incompleteSchema,
  })
  .describe('Time of the cameras, watched and blind.')
