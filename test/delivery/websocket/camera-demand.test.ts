import { expect, it } from 'vitest'
import { CameraDemand } from '../../../src/delivery/websocket/camera-demand.js'

it('says that the union changed only when it did', () => {
  const demand = new CameraDemand()
  expect(demand.replace([], ['dock-1'])).toBe(true)
  expect(demand.replace([], ['dock-1', 'gate'])).toBe(true)
  expect(demand.replace([], ['gate'])).toBe(false)
  expect(demand.replace(['dock-1'], ['gate'])).toBe(false)
  expect([...demand.cameras].sort()).toEqual(['dock-1', 'gate'])
  expect(demand.replace(['dock-1', 'gate'], ['*', 'gate'])).toBe(true)
  expect([...demand.cameras].sort()).toEqual(['*', 'gate'])
})
