import { describe, expect, it } from 'vitest'
import {
  countsOf,
  isNumberedWithGaps,
  labelOf,
  namesBackground,
  namesNoClass,
} from '../../../src/detector/heads/label-list.js'

describe('a label list', () => {
  it.each([
    'background',
    '__background__',
    '_background_',
    'BACKGROUND',
    'Background ',
    '[background]',
    'back-ground',
    'bg',
    '__BG__',
    'no-object',
    'no object',
    'no_object',
    'unlabeled',
    '背景',
  ])('has "%s" for nothing', (label) => expect(namesBackground(label)).toBe(true))

  it.each(['none', 'no_helmet', 'nothing on the head', 'backpack', 'bag', 'person', 'N/A', '头'])(
    'has "%s" for something else',
    (label) => expect(namesBackground(label)).toBe(false),
  )

  it('keeps lines for classes that a model lacks', () => {
    for (const label of ['N/A', 'n/a', 'NA', '???', '-', '']) expect(namesNoClass(label), label).toBe(true)
    for (const label of ['none', 'nail', '头', '7']) expect(namesNoClass(label), label).toBe(false)
    expect([0, 1, 2].map((line) => labelOf(['helmet', 'N/A'], line))).toEqual([
      'helmet',
      undefined,
      undefined,
    ])
  })

  it('may stand for several numbers of classes', () => {
    expect(countsOf(['a', 'b'])).toEqual([2])
    expect(countsOf(['bg', 'a', 'b'])).toEqual([3, 2])
    expect(countsOf(['bg', 'a', 'N/A', 'b'])).toEqual([4, 3, 2])
    expect(countsOf(['bg', 'a', 'no-object'])).toEqual([3, 1])
  })

  it('has numbers as in training where it begins with nothing and has gaps', () => {
    expect(isNumberedWithGaps(['N/A', 'a', 'N/A', 'b'])).toBe(true)
    expect(isNumberedWithGaps(['background', 'a', 'b'])).toBe(false)
  })
})
