import { describe, expect, it } from 'vitest'
import {
  decodeMemberData,
  encodeMemberData,
  type MemberData,
  rangesOf,
} from '../../src/cluster/member-data.js'

const data = (held: Iterable<readonly [number, number]>): MemberData => ({
  ...{ node: 'a', url: 'http://a:8000', version: '1', layout: '8 slots', models: 'ppe version 1' },
  capacity: { cores: 2, framesPerSecond: null },
  held: new Map(held),
})

describe('what a node tells its group', () => {
  it.each([
    ['nothing', []],
    ['slots of several claims', [[5, 7], [0, 7], [1, 7], [2, 9], [8191, 7]]], // prettier-ignore
    ['all slots there may be', Array.from({ length: 8_192 }, (_, slot) => [slot, 1_795_870_675])],
  ] as [string, [number, number][]][])('is read as it was written: %s', (_, held) => {
    const read = decodeMemberData(encodeMemberData(data(held)))
    expect(new Map([...(read?.held ?? [])].sort(([a], [b]) => a - b))).toEqual(
      new Map([...held].sort(([a], [b]) => a - b)),
    )
    expect({ ...read, held: undefined }).toEqual({ ...data([]), held: undefined })
  })

  it('takes little room, whatever the number of slots', () => {
    const all = Array.from({ length: 8_192 }, (_, slot) => [slot, 1] as const)
    expect(encodeMemberData(data(all)).length).toBeLessThan(400)
    expect(rangesOf([2, 0, 1, 5])).toBe('0-2,5')
  })

  it.each([
    '',
    'no JSON',
    '{}',
    '[]',
    ...['x', '3-1', '-1', '0-8192', '0-99999999999'].map((ranges) =>
      encodeMemberData(data([[3, 1]]))
        .toString()
        .replace('"3"', JSON.stringify(ranges)),
    ),
  ])('is nothing where no node of ours has written it: %s', (text) => {
    expect(decodeMemberData(Buffer.from(text))).toBeUndefined()
  })
})
