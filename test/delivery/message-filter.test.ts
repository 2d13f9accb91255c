import { describe, expect, it } from 'vitest'
import { filterOf, keepAll, keptPositions } from '../../src/delivery/message-filter.js'
import { Rendering } from '../../src/delivery/websocket/rendering.js'
import { detectionsMessage, detectionsText } from '../support/detections.js'

describe('filterOf', () => {
  it('gives equal filters equal keys, whatever the order and repetition of labels', () => {
    const one = filterOf({ labels: ['helmet', 'person'], minScore: 0.5 })
    const other = filterOf({ labels: ['person', 'helmet', 'helmet'], minScore: 0.5 })
    expect(one.key).toBe(other.key)
    expect(filterOf({ labels: ['person'], minScore: 0.5 }).key).not.toBe(one.key)
    expect(filterOf({ labels: ['helmet', 'person'], minScore: 0.4 }).key).not.toBe(one.key)
    expect(filterOf({ labels: ['a","b'], minScore: 0 }).key).not.toBe(
      filterOf({ labels: ['a', 'b'], minScore: 0 }).key,
    )
  })

  it('is the filter that keeps all without labels and score', () => {
    expect(filterOf({ labels: [], minScore: 0 })).toBe(keepAll)
  })
})

describe('keptPositions', () => {
  const { detections } = detectionsMessage()
  it.each([
    ['keeps all', [], 0, [0, 1]],
    ['keeps a label', ['person'], 0, [1]],
    ['keeps a score and those at it', [], 0.91, [0]],
    ['keeps nothing when label and score fit no single detection', ['person'], 0.7, []],
  ])('%s', (_, labels, minScore, kept) => {
    expect(keptPositions(filterOf({ labels, minScore }), detections)).toEqual(kept)
  })
})

describe('Rendering', () => {
  const rendering = () => new Rendering('e1-5', detectionsText().json)

  it('gives the same buffer to equal filters, and to different ones that keep the same', () => {
    const rendered = rendering()
    const helmets = rendered.for(filterOf({ labels: ['helmet'], minScore: 0 }))
    expect(rendered.for(filterOf({ labels: ['helmet'], minScore: 0 }))).toBe(helmets)
    expect(rendered.for(filterOf({ labels: [], minScore: 0.9 }))).toBe(helmets)
    expect(JSON.parse(helmets.subarray(helmets.indexOf('{')).toString())).toEqual({
      type: 'detections',
      cursor: 'e1-5',
      ...detectionsMessage({ capturedAtMs: Date.parse(rendered.message.capturedAt) }),
      detections: [detectionsMessage().detections[0]],
    })
  })

  it('gives the whole message to a filter that leaves nothing out', () => {
    const rendered = rendering()
    expect(rendered.for(filterOf({ labels: [], minScore: 0.1 }))).toBe(rendered.whole)
    expect(rendered.for(keepAll)).toBe(rendered.whole)
  })
})
