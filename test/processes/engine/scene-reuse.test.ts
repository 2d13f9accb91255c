import { beforeEach, describe, expect, it } from 'vitest'
import { SceneReuse } from '../../../src/processes/engine/scene-reuse.js'
import { grey, inputSize } from './frames.js'

const person = { label: 'person', score: 0.9, boxPx: { x1: 1, y1: 2, x2: 3, y2: 4 } }

describe('scene reuse', () => {
  let reuse: SceneReuse

  beforeEach(() => {
    reuse = new SceneReuse({ maxAgeMs: 1_000, minChange: 10 }, inputSize)
    const first = grey(1, 0)
    expect(reuse.reusable(first)).toBeUndefined()
    reuse.analysed(first, [person])
  })

  it('gives the last result to a frame that shows the same', () => {
    expect(reuse.reusable(grey(2, 200, 103))).toMatchObject({ seq: 1, detections: [person] })
  })

  it('analyses again when the scene changes, when the result is too old, and when the picture is damaged or of another size', () => {
    expect(reuse.reusable(grey(2, 200, 120))).toBeUndefined()
    reuse.dropped(grey(2, 200))
    expect(reuse.reusable(grey(3, 1_000))).toBeUndefined()
    reuse.dropped(grey(3, 1_000))
    expect(reuse.reusable(grey(4, 300, 100, { quality: 'suspect' }))).toBeUndefined()
    reuse.dropped(grey(4, 300))
    expect(reuse.reusable(grey(5, 400, 100, { source: { widthPx: 640, heightPx: 640 } }))).toBeUndefined()
  })

  it('compares with the analysed frame, so that a slow change adds up', () => {
    const brightness = [103, 106, 109, 112]
    const reused = brightness.map((value, index) => reuse.reusable(grey(2 + index, 100 * index, value)))
    expect(reused.map((result) => result?.seq)).toEqual([1, 1, 1, undefined])
  })

  it('reuses nothing while a frame is being analysed, and goes on from its result', () => {
    const changed = grey(2, 100, 180)
    expect(reuse.reusable(changed)).toBeUndefined()
    expect(reuse.reusable(grey(3, 200, 100))).toBeUndefined()
    reuse.dropped(grey(3, 200))
    reuse.analysed(changed, [])
    expect(reuse.reusable(grey(4, 300, 180))).toMatchObject({ seq: 2, detections: [] })
  })

  it('does not reuse what was seen in a damaged picture', () => {
    const suspect = grey(2, 100, 180, { quality: 'suspect' })
    reuse.reusable(suspect)
    reuse.analysed(suspect, [person])
    expect(reuse.reusable(grey(3, 200, 180))).toBeUndefined()
  })
})
