import { describe, expect, it } from 'vitest'
import { bucketMs, percentile, Series } from '../../web/src/state/series.js'
import { matches, Sightings, type Entry } from '../../web/src/state/sightings.js'
import { fakeResult } from '../support/fake-gantry.js'

const box = { x1: 0, y1: 0, x2: 1, y2: 1 }
const seen = (
  ...labels: string[]
): { detections: { label: string; score: number; boxPx: typeof box }[] } => ({
  detections: labels.map((label) => ({ label, score: 0.5, boxPx: box })),
})

describe('Series', () => {
  it('gives percentiles and rate of each whole stretch, but of the first, which is cut', () => {
    const series = new Series()
    series.opened(1_000)
    series.add(1_000, 999)
    for (let i = 1; i <= 100; i += 1) series.add(bucketMs + i, i)
    series.add(2 * bucketMs + 1, 5)
    expect(series.points(2 * bucketMs + 1_000)).toEqual([
      { atS: (2 * bucketMs) / 1000, fps: 50, p50Ms: 50, p99Ms: 99 },
    ])
  })

  it('shows a silence as zero frames without a latency', () => {
    const series = new Series()
    series.opened(0)
    expect(series.points(3 * bucketMs + 1_000).map(({ fps, p50Ms }) => [fps, p50Ms])).toEqual([
      [0, null],
      [0, null],
    ])
  })

  it('keeps five minutes, also after the tab slept for a day', () => {
    const series = new Series()
    series.opened(0)
    expect(series.points(86_400_000)).toHaveLength(150)
    expect(series.points(86_400_000 + 100 * bucketMs)).toHaveLength(150)
  })

  it('waits for results that take long, and shows no standstill instead', () => {
    const series = new Series()
    series.opened(0)
    for (const bucket of [1, 2]) series.add(bucket * bucketMs, 3_000)
    expect(series.points(4 * bucketMs).map(({ fps }) => fps)).toEqual([0.5])
    expect(series.points(3 * bucketMs + 3_000).map(({ fps }) => fps)).toEqual([0.5, 0.5])
  })

  it('R99: ends at a break, and is filled where things were captured once they are replayed', () => {
    const series = new Series()
    series.opened(0)
    const at = (bucket: number): number => bucket * bucketMs + 10
    for (const bucket of [1, 2]) series.add(at(bucket), 40)
    series.broke(3 * bucketMs + 1_500)
    const during = series.points(9 * bucketMs)
    expect(during.map(({ fps }) => fps)).toEqual([0.5, 0.5])
    series.opened(9 * bucketMs)
    // All of it comes within one moment.
    for (const bucket of [3, 4, 5, 7, 8, 8]) series.add(at(bucket), 40)
    expect(series.points(9 * bucketMs + 1_000).map(({ fps }) => fps)).toEqual([
      0.5, 0.5, 0.5, 0.5, 0.5, 0, 0.5, 1,
    ])
  })

  it('R99: does not call unknown what was lost for good a standstill', () => {
    const series = new Series()
    series.opened(0)
    series.add(bucketMs, 40)
    series.broke(2 * bucketMs)
    series.opened(6 * bucketMs)
    series.missed()
    series.add(5 * bucketMs, 40)
    expect(series.points(8 * bucketMs + 1_000).map(({ fps }) => fps)).toEqual([
      0.5,
      null,
      null,
      null,
      0.5,
      null,
      0,
    ])
  })
})

it.each([
  [[], 0.5, null],
  [[7], 0.99, 7],
  [[1, 2, 3, 4], 0.5, 2],
])('percentile of %j at %d is %s', (values, share, expected) => {
  expect(percentile(values, share)).toBe(expected)
})

describe('Sightings', () => {
  it('makes one line of what stays the same, and a new one of what changes', () => {
    const sightings = new Sightings()
    sightings.add(fakeResult('a', 1, { ...seen('person'), capturedAt: '2026-11-20T08:00:00.000Z' }))
    sightings.add(fakeResult('a', 2, { ...seen('person'), capturedAt: '2026-11-20T08:00:02.000Z' }))
    sightings.add(fakeResult('b', 1, seen('person')))
    sightings.add(fakeResult('a', 3, seen('person', 'head')))
    const lines = sightings.entries.map((entry) =>
      entry.kind === 'sighting' ? [entry.cameraId, entry.frames] : [],
    )
    expect(lines).toEqual([
      ['a', 1],
      ['b', 1],
      ['a', 2],
    ])
    const first = sightings.entries[2]
    expect(first?.kind === 'sighting' && first.lastAtMs - first.firstAtMs).toBe(2_000)
  })

  it('names what calls for a look first', () => {
    const sightings = new Sightings()
    sightings.add(fakeResult('a', 1, seen('person', 'person', 'head')))
    const [entry] = sightings.entries
    expect(entry?.kind === 'sighting' && entry.labels.map(({ label, count }) => [label, count])).toEqual([
      ['head', 1],
      ['person', 2],
    ])
  })

  it('has no line for a picture without detections, and a new one when they come back', () => {
    const sightings = new Sightings()
    for (const labels of [['person'], [], ['person']]) sightings.add(fakeResult('a', 1, seen(...labels)))
    expect(sightings.entries).toHaveLength(2)
  })

  it('stays bounded', () => {
    const sightings = new Sightings()
    for (let i = 0; i < 2_000; i += 1) sightings.add(fakeResult('a', i + 1, seen(`label-${i}`)))
    expect(sightings.entries).toHaveLength(400)
  })
})

it.each([
  ['', true],
  ['head', true],
  ['DOCK', true],
  ['dock head', true],
  ['dock zebra', false],
  ['no_vest', true],
  ['no-vest', true],
  ['no vest', true],
  ['No  Vest dock', true],
  ['no helmet', false],
  ['no dock', false],
])('a sighting of a head, a helmet and no vest at dock-1 fits the filter %j: %s', (filter, expected) => {
  const entry: Entry = {
    kind: 'sighting',
    key: 's1',
    cameraId: 'dock-1',
    labels: [
      { label: 'head', count: 1, bestScore: 1 },
      { label: 'no_vest', count: 1, bestScore: 1 },
      { label: 'helmet', count: 1, bestScore: 1 },
    ],
    firstAtMs: 0,
    lastAtMs: 0,
    frames: 1,
  }
  expect(matches(entry, filter)).toBe(expected)
})
