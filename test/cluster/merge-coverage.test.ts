import { describe, expect, it } from 'vitest'
import { mergeCoverage, withoutSpans } from '../../src/cluster/merge-coverage.js'
import { timesOfCameras, type CameraTime } from '../../src/coverage/coverage-sums.js'
import type { BlindCause } from '../../src/vision/coverage.js'

type Stretch = readonly [fromMs: number, toMs: number, cause: BlindCause | null]

/** What a node answers of one camera; of 0 to 1,000. */
function node(cameraId: string, ...stretches: readonly Stretch[]): readonly CameraTime[] {
  const spans = stretches.map(([fromMs, toMs, cause]) => ({ cameraId, fromMs, toMs, cause }))
  return timesOfCameras(spans, { fromMs: 0, toMs: 1_000, withSpans: true })
}

const spansOf = (times: readonly CameraTime[]) =>
  times[0]!.spans?.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause])

describe('coverage of several nodes', () => {
  it('is that of all cameras, in the order of their ids, as their one node has it', () => {
    const [dock, gate] = [
      node('dock', [-50, 1_000, null]),
      node('gate', [0, 900, null], [900, 1_000, 'stalled']),
    ]
    expect(mergeCoverage([gate, dock, []], true)).toEqual([...dock, ...gate])
    expect(withoutSpans(dock)[0]).toMatchObject({ spans: null, watchedMs: 1_000 })
  })

  it('R176: tells the time before a node took over as blind where all have answered, and leaves it out where one may have it', () => {
    const nodes = [node('dock', [400, 450, 'service_down'], [450, 1_000, null]), node('dock', [0, 300, null])]
    const [whole] = mergeCoverage(nodes, true)
    expect(spansOf([whole!])).toEqual([[0, 300, null], [300, 450, 'service_down'], [450, 1_000, null]]) // prettier-ignore
    expect(whole).toMatchObject({ fromMs: 0, toMs: 1_000, watchedMs: 850, blindMs: 150 })
    const [partly] = mergeCoverage(nodes, false)
    expect(spansOf([partly!])).toEqual([[0, 300, null], [400, 450, 'service_down'], [450, 1_000, null]]) // prettier-ignore
    expect(partly).toMatchObject({ watchedMs: 850, blindMs: 50 })
    // The same node, which was away in between.
    const again = node('dock', [0, 300, null], [400, 450, 'service_down'], [450, 1_000, null])
    expect(spansOf(mergeCoverage([again], true))).toEqual(spansOf([whole!]))
  })

  it('R176: counts what one has watched, and not that another was off meanwhile or could not see', () => {
    const restarted = node('dock', [0, 200, null], [200, 800, 'service_down'], [800, 1_000, null])
    const other = node('dock', [150, 300, 'disconnected'], [300, 780, null])
    expect(spansOf(mergeCoverage([restarted, other], true))).toEqual([
      [0, 200, null],
      [200, 300, 'disconnected'],
      [300, 780, null],
      [780, 800, 'service_down'],
      [800, 1_000, null],
    ])
  })

  it('takes the cause of the node that had the camera last where both were blind', () => {
    const before = node('dock', [0, 500, 'stalled'])
    const last = node('dock', [400, 1_000, 'disconnected'])
    for (const nodes of [[before, last], [last, before]]) // prettier-ignore
      expect(spansOf(mergeCoverage(nodes, true))).toEqual([[0, 400, 'stalled'], [400, 1_000, 'disconnected']]) // prettier-ignore
  })

  it('leaves out time before the camera was added again, in which there was none', () => {
    const added = node('dock', [0, 100, null], [600, 650, 'disconnected'], [650, 1_000, null])
    expect(spansOf(mergeCoverage([added, node('dock', [0, 50, null])], true))).toEqual([
      [0, 100, null],
      [600, 650, 'disconnected'],
      [650, 1_000, null],
    ])
  })

  it('says since when it is as it is now, also from before the time that was asked for', () => {
    const [still] = mergeCoverage([node('dock', [-500, 1_000, null]), node('dock', [0, 10, 'stalled'])], true)
    expect(still).toMatchObject({ last: { fromMs: -500, cause: null }, blindMs: 0, watchedMs: 1_000 })
    const [taken] = mergeCoverage([node('dock', [-500, 600, null]), node('dock', [550, 1_000, null])], true)
    expect(taken).toMatchObject({ last: { fromMs: 0, cause: null }, watchedMs: 1_000 })
  })
})
