import { describe, expect, it } from 'vitest'
import { nodeWeights } from '../../src/cluster/node-weights.js'

describe('nodeWeights', () => {
  it('goes by cores while nothing is measured', () => {
    expect(nodeWeights([2, 4, 8].map((cores) => ({ cores, framesPerSecond: null })))).toEqual([2, 4, 8])
  })

  it('takes what is usual for the cores of a node that has measured nothing', () => {
    const nodes = [
      { cores: 2, framesPerSecond: 40 },
      { cores: 4, framesPerSecond: null },
    ]
    expect(nodeWeights(nodes)).toEqual([40, 80])
  })

  it('counts nodes as alike that measure about the same, and not those that differ', () => {
    const nodes = [36, 40, 44, 160].map((framesPerSecond) => ({ cores: 2, framesPerSecond }))
    expect(nodeWeights(nodes)).toEqual([40, 40, 40, 160])
  })

  it('has a weight for each of nodes that can do nothing', () => {
    expect(nodeWeights([{ cores: 2, framesPerSecond: 0 }])).toEqual([0])
    expect(nodeWeights([])).toEqual([])
  })
})
