import { expect, it } from 'vitest'
import { EnergyMeter } from '../../../src/processes/control/energy-meter.js'

it('counts watts times seconds between readings', () => {
  const meter = new EnergyMeter(10_000)
  expect(meter.joules).toBeNull()
  meter.read(100, 5_000)
  expect(meter.joules).toBe(0)
  meter.read(300, 7_000)
  expect(meter.joules).toBe(400)
  meter.read(300, 7_500)
  expect(meter.joules).toBe(550)
})

it('does not count time in which nothing was read', () => {
  const meter = new EnergyMeter(10_000)
  meter.read(100, 0)
  meter.read(null, 1_000)
  meter.read(100, 2_000)
  expect(meter.joules).toBe(0)
  meter.pause()
  meter.read(100, 3_000)
  expect(meter.joules).toBe(0)
  meter.read(100, 13_001)
  expect(meter.joules).toBe(0)
  meter.read(100, 14_001)
  expect(meter.joules).toBe(100)
})

it('is a number that Prometheus and perf_analyzer read, without an exponent', () => {
  const meter = new EnergyMeter(10_000)
  meter.read(0.000_1, 0)
  meter.read(0.000_1, 1)
  expect(String(meter.joules)).toBe('0')
  meter.read(333.33, 3_001)
  expect(String(meter.joules)).toMatch(/^\d+\.?\d*$/)
})
