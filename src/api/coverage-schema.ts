import { z } from 'zod'
import { cameraIdSchema } from '../config/camera.js'
import { blindCauses, coverageStates, type BlindCause, type CoverageState } from '../vision/coverage.js'
import { coverageSums, type CameraTime } from '../coverage/coverage-sums.js'
import type { CoverageView } from './gantry.js'
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

/** As it is answered. */
export function coverageBody({
  fromMs,
  toMs,
  items,
  incomplete,
}: CoverageView): z.input<typeof coverageSchema> {
  return {
    from: stamp(fromMs),
    to: stamp(toMs),
    items: items.map(({ cameraId, watchedMs, blindMs, byCauseMs, last, spans, ...own }) => ({
      cameraId,
      from: stamp(own.fromMs),
      to: stamp(own.toMs),
      watchedSeconds: watchedMs / 1_000,
      blindSeconds: blindMs / 1_000,
      blindSecondsByCause: Object.fromEntries([...byCauseMs].map(([cause, ms]) => [cause, ms / 1_000])),
      last: { since: stamp(last.fromMs), state: stateOf(last.cause), cause: last.cause },
      spans:
        spans?.map((span) => ({
          from: stamp(span.fromMs),
          to: stamp(span.toMs),
          state: stateOf(span.cause),
          cause: span.cause,
        })) ?? null,
    })),
    ...(incomplete && { incomplete }),
  }
}

/** The same read back from another node, which was asked for spans. */
export function timesInCoverageBody(body: z.output<typeof coverageSchema>): CameraTime[] {
  return body.items.map(({ cameraId, last, ...item }) => {
    const spans = (item.spans ?? []).map(({ from, to, cause }) => {
      return { cameraId, fromMs: Date.parse(from), toMs: Date.parse(to), cause }
    })
    return {
      ...{ cameraId, spans, ...coverageSums(spans) },
      fromMs: Date.parse(item.from),
      toMs: Date.parse(item.to),
      last: { fromMs: Date.parse(last.since), cause: last.cause },
    }
  })
}

function stateOf(cause: BlindCause | null): CoverageState {
  return cause === null ? 'watched' : 'blind'
}

function stamp(ms: number): string {
  return new Date(ms).toISOString()
}
