import { describe, expect, it } from 'vitest'
import { timesOfCameras } from '../../src/coverage/coverage-sums.js'
import type { CoverageSpan } from '../../src/vision/coverage.js'

const span = (
  cameraId: string,
  fromMs: number,
  toMs: number,
  cause: CoverageSpan['cause'],
): CoverageSpan => ({
  cameraId,
  fromMs,
  toMs,
  cause,
})

describe('timesOfCameras', () => {
  const spans = [
    span('a', 0, 500, null),
    span('a', 500, 2_000, 'covered'),
    span('b', 0, 900, 'dark'),
    span('b', 900, 2_000, null),
    span('gone', 0, 1_000, null),
  ]

  it('R142: says how each camera is at the end of the time, and since when, also from before what was asked for', () => {
    const [a, b, ...others] = timesOfCameras(spans, { fromMs: 1_000, toMs: 2_000, withSpans: false })
    expect(a).toMatchObject({ cameraId: 'a', watchedMs: 0, blindMs: 1_000, spans: null })
    expect(a?.last).toEqual({ fromMs: 500, cause: 'covered' })
    expect(b?.last).toEqual({ fromMs: 900, cause: null })
    expect(others).toEqual([])
  })

  it('cuts spans to what was asked for', () => {
    const [a] = timesOfCameras(spans, { fromMs: 400, toMs: 600, withSpans: true })
    expect(a).toMatchObject({ fromMs: 400, toMs: 600, watchedMs: 100, blindMs: 100 })
    expect(a?.spans?.map(({ fromMs, toMs }) => [fromMs, toMs])).toEqual([
      [400, 500],
      [500, 600],
    ])
    expect(a?.last).toEqual({ fromMs: 500, cause: 'covered' })
  })
})
