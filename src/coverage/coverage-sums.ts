import { blindCauses, type BlindCause, type CoverageSpan } from '../vision/coverage.js'

export type CoverageSums = Readonly<{
  watchedMs: number
  blindMs: number
  /** Causes that occur, in their order. */
  byCauseMs: ReadonlyMap<BlindCause, number>
}>

/** The part of each span that lies within; others are left out. */
function clipped(spans: readonly CoverageSpan[], fromMs: number, toMs: number): CoverageSpan[] {
  return spans
    .map((span) => ({
      ...span,
      fromMs: Math.max(span.fromMs, fromMs),
      toMs: Math.min(span.toMs, toMs),
    }))
    .filter((span) => span.fromMs < span.toMs)
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
  }>

/** @param spans - those of one camera behind each other. */
export function timesOfCameras(
  spans: readonly CoverageSpan[],
  { fromMs, toMs, withSpans }: Readonly<{ fromMs: number; toMs: number; withSpans: boolean }>,
): CameraTime[] {
  const cameras = new Map<string, CoverageSpan[]>()
  for (const span of clipped(spans, fromMs, toMs)) {
    const own = cameras.get(span.cameraId)
    if (own) own.push(span)
    else cameras.set(span.cameraId, [span])
  }
  return [...cameras].map(([cameraId, own]) => ({
    cameraId,
    fromMs: own[0]?.fromMs ?? fromMs,
    toMs: own.at(-1)?.toMs ?? toMs,
    ...coverageSums(own),
    spans: withSpans ? own : null,
  }))
}
