import { blindCauses, type BlindCause, type CoverageSpan } from '../vision/coverage.js'

export type CoverageSums = Readonly<{
  watchedMs: number
  blindMs: number
  /** Causes that occur, in their order. */
  byCauseMs: ReadonlyMap<BlindCause, number>
}>

function within(span: CoverageSpan, fromMs: number, toMs: number): CoverageSpan {
  return { ...span, fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, toMs) }
}

export function coverageSums(spans: readonly CoverageSpan[]): CoverageSums {
  const ms = new Map<BlindCause | null, number>()
  for (const { cause, fromMs, toMs } of spans) ms.set(cause, (ms.get(cause) ?? 0) + toMs - fromMs)
  const watchedMs = ms.get(null) ?? 0
  const byCauseMs = new Map(
    blindCauses.flatMap((cause) => (ms.has(cause) ? [[cause, ms.get(cause) ?? 0] as const] : [])),
  )
  return { watchedMs, blindMs: [...byCauseMs.values()].reduce((sum, one) => sum + one, 0), byCauseMs }
}

/** The time of one camera within what was asked for. */
export type CameraTime = CoverageSums &
  Readonly<{
    cameraId: string
    /** Of what is known. */
    fromMs: number
    toMs: number
    /** Null where sums alone were asked for. */
    spans: readonly CoverageSpan[] | null
    /** The end of that time: how it is now, where it was asked for until now. It may have begun before what was asked for. */
    last: Pick<CoverageSpan, 'fromMs' | 'cause'>
  }>

/** @param spans - those of one camera behind each other. */
export function timesOfCameras(
  spans: readonly CoverageSpan[],
  { fromMs, toMs, withSpans }: Readonly<{ fromMs: number; toMs: number; withSpans: boolean }>,
): CameraTime[] {
  const cameras = new Map<string, CoverageSpan[]>()
  for (const span of spans) {
    if (Math.max(span.fromMs, fromMs) >= Math.min(span.toMs, toMs)) continue
    const own = cameras.get(span.cameraId)
    if (own) own.push(span)
    else cameras.set(span.cameraId, [span])
  }
  return [...cameras].map(([cameraId, whole]) => {
    const own = whole.map((span) => within(span, fromMs, toMs))
    const { fromMs: sinceMs, cause } = whole.at(-1)!
    return {
      cameraId,
      fromMs: own[0]!.fromMs,
      toMs: own.at(-1)!.toMs,
      ...coverageSums(own),
      spans: withSpans ? own : null,
      last: { fromMs: sinceMs, cause },
    }
  })
}
