import { expect, it } from 'vitest'
import { labelName } from '../../src/vision/label-name.js'

it.each([
  ['no_vest', 'no vest'],
  ['no-vest', 'no vest'],
  ['NO-Safety Vest', 'NO Safety Vest'],
  ['person', 'person'],
  ['fire__extinguisher_', 'fire extinguisher'],
  ['_', '_'],
])('writes the label %j as people do: %j', (label, name) => {
  expect(labelName(label)).toBe(name)
})
