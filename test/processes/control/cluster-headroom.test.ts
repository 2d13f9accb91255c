import { describe, expect, it } from 'vitest'
import { clusterHeadroom } from '../../../src/processes/control/cluster-headroom.js'

const node = (name: string, slots: number, cameras: number | null) => ({
  node: name,
  slots,
  view: { cameras, limitedBy: cameras === null ? null : ('cpu' as const), reason: 'why' },
})

describe('room of a cluster', () => {
  it.each([
    [
      'as much as all have where their slots are as their room',
      [node('a', 10, 5), node('b', 20, 10)],
      15,
      15,
    ],
    ['less where one gets more than it has room for', [node('a', 15, 5), node('b', 15, 20)], 10, 25],
    ['none where one that gets cameras is full', [node('a', 1, 0), node('b', 63, 40)], 0, 40],
    ['without nodes that get no cameras', [node('a', 64, 7), node('b', 0, 3)], 7, 10],
  ])('is %s', (_, nodes, cameras, sum) => {
    expect(clusterHeadroom(nodes, [])).toMatchObject({
      cameras,
      sum,
      reason: expect.stringMatching(/node [ab] has no room/) as string,
    })
  })

  it('is not known while that of one node is not, and says of which', () => {
    const { cameras, sum, reason } = clusterHeadroom([node('a', 32, 5), node('b', 32, null)], [])
    expect([cameras, sum, reason]).toEqual([null, 5, 'not known of all nodes: b has measured nothing yet'])
    const missing = ['b: it does not answer']
    expect(clusterHeadroom([node('a', 32, 5)], missing)).toMatchObject({
      ...{ cameras: null, incomplete: missing, reason: 'not known of all nodes: b: it does not answer' },
    })
    expect(clusterHeadroom([], [])).toMatchObject({
      cameras: null,
      reason: expect.stringMatching(/none has slots/) as string,
    })
  })
})
