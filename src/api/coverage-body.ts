import type { z } from 'zod'
import type { BlindCause, CoverageState } from '../vision/coverage.js'
import { coverageSums, type CameraTime } from '../coverage/coverage-sums.js'
import type { CoverageView } from './gantry.js'
import type { coverageSchema } from './coverage-schema.js'

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
