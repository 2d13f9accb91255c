import { api } from '../api/client.js'
import type { Coverage } from '../api/types.js'

/** What a timeline shows: the last hour, or day. */
export const coverageRanges = { hour: 3_600_000, day: 86_400_000 } as const
export type CoverageRangeName = keyof typeof coverageRanges

/** @param nowMs - wall time of the service. @throws ApiError, UnreachableError */
export function coverageOf(
  cameraId: string,
  range: CoverageRangeName,
  nowMs: number,
  signal: AbortSignal,
): Promise<Coverage> {
  const from = new Date(nowMs - coverageRanges[range]).toISOString()
  return api.coverage(`cameraId=${encodeURIComponent(cameraId)}&from=${from}`, signal)
}

export type CoverageItem = Coverage['items'][number]
export type CoverageSpanView = NonNullable<CoverageItem['spans']>[number]
export type ShownSpan = Readonly<{
  /** Percent of the range. */
  left: number
  width: number
  cause: CoverageSpanView['cause']
  fromMs: number
  toMs: number
}>

/** Spans as they lie in the range. */
export function shownSpans(spans: readonly CoverageSpanView[], fromMs: number, toMs: number): ShownSpan[] {
  const whole = toMs - fromMs
  return spans.map((span) => {
    const [begins, ends] = [Date.parse(span.from), Date.parse(span.to)]
    return {
      left: ((begins - fromMs) / whole) * 100,
      width: ((ends - begins) / whole) * 100,
      cause: span.cause,
      fromMs: begins,
      toMs: ends,
    }
  })
}

export const causeTexts: Readonly<Record<NonNullable<CoverageSpanView['cause']>, string>> = {
  disabled: 'switched off',
  service_down: 'service down',
  engine_down: 'engine down',
  disconnected: 'disconnected',
  stalled: 'no pictures',
  shed: 'too busy',
  suspect: 'damaged pictures',
  frozen_picture: 'frozen picture',
  dark: 'dark',
  covered: 'covered',
  blurred: 'blurred',
  moved: 'moved',
}

/** What a picture that comes shows, or does not: nothing else on the page says so. In words, for people. */
export const pictureTroubles: Readonly<Partial<Record<keyof typeof causeTexts, string>>> = {
  dark: 'There is no light in the picture',
  covered: 'Something lies over the lens',
  blurred: 'What is sharp in this scene is not any more',
  moved: 'The picture shows another scene than before',
}

/** `99.9 %` of all but a moment, which is not all. */
export function percentWatched(share: number): string {
  return `${share > 0.999 && share < 1 ? '99.9' : (share * 100).toFixed(1).replace(/\.0$/, '')} %`
}
