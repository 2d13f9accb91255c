import { expect, it } from 'vitest'
import { isDanger, labelColor } from '../../src/vision/label-colors.js'

it('keeps the colour of a label, and tells protection from its absence', () => {
  expect(labelColor('Helmet')).toBe(labelColor('helmet'))
  expect(labelColor('zebra')).toBe(labelColor('zebra'))
  expect(labelColor('helmet')).not.toBe(labelColor('head'))
  expect([isDanger('head'), isDanger('no-vest'), isDanger('helmet'), isDanger('nozzle')]).toEqual([
    true,
    true,
    false,
    false,
  ])
})
