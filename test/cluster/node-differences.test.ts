import { describe, expect, it } from 'vitest'
import type { MemberData } from '../../src/cluster/member-data.js'
import { differences, keptOutBy, sharedLayout } from '../../src/cluster/node-differences.js'

function node(name: string, more: Partial<MemberData> & { slots?: number } = {}): MemberData {
  const { slots = 0, ...rest } = more
  return {
    node: name,
    url: `http://${name}`,
    version: '1',
    capacity: { cores: 2, framesPerSecond: null },
    layout: 'usual',
    models: 'ppe version 1',
    held: new Map(Array.from({ length: slots }, (_, slot) => [slot, 1] as const)),
    ...rest,
  }
}

describe('nodes of one cluster', () => {
  it('have nothing to tell where they are alike, in whatever url and version', () => {
    const [own, ...others] = [node('a'), node('b', { version: '2' }), node('c', { models: '' })]
    expect(keptOutBy(own, others)).toBeUndefined()
    expect(differences(own, others)).toEqual([])
  })

  it('of several layouts take that which runs most slots, then that which most have', () => {
    const odd = node('z', { layout: 'odd', slots: 1 })
    expect(sharedLayout([node('a'), node('b'), odd])).toBe('odd')
    expect(sharedLayout([node('a'), node('b'), { ...odd, held: new Map() }])).toBe('usual')
    expect(sharedLayout([node('a'), { ...odd, held: new Map() }])).toBe('odd')
    expect(sharedLayout([])).toBeUndefined()
  })

  it('R168: keep out one with another layout: it is told why, and the others are told who gets nothing', () => {
    const usual = [node('a', { slots: 2 }), node('b', { slots: 2 })]
    const odd = node('z', { layout: 'odd' })
    expect(keptOutBy(odd, usual)).toMatch(/here odd; on node a usual\. .*cluster\.topics/)
    for (const each of usual) {
      const others = [...usual, odd].filter((other) => other !== each)
      expect(keptOutBy(each, others)).toBeUndefined()
      expect(differences(each, others)).toEqual([expect.stringMatching(/^node z gets no cameras: .*odd/)])
    }
  })

  it('are told of other models and of a name that two have', () => {
    expect(differences(node('a'), [node('b', { models: 'ppe version 2' })])).toEqual([
      'node b runs ppe version 2 for its cameras, and this one ppe version 1',
    ])
    expect(differences(node('a'), [node('a', { url: 'http://elsewhere' })])).toEqual([
      expect.stringMatching(/http:\/\/elsewhere calls itself a, too: .*cluster\.node/),
    ])
    // Itself before it was started again: the brokers have not noticed yet.
    expect(differences(node('a'), [node('a')])).toEqual([])
  })
})
