import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { DeviceStates } from '../../src/processes/device-states.js'

/** With a time of its own. */
function states(devices: readonly number[]) {
  const time = { ms: 1_000 }
  return { time, devices: new DeviceStates(devices, () => time.ms) }
}

describe('GPUs that fail', () => {
  it('are held back for ever longer while they go on failing, five minutes at most', () => {
    const { time, devices } = states([0, 1])
    const waits = Array.from({ length: 9 }, () => {
      const forMs = devices.failed(1)
      expect(devices.used).toEqual([0])
      time.ms += forMs
      expect(devices.used).toEqual([0, 1])
      return forMs / 1_000
    })
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300])
  })

  it('begin anew once they have worked for ten minutes, not sooner', () => {
    const { time, devices } = states([0, 1])
    time.ms += devices.failed(1)
    devices.works(1)
    time.ms += 599_000
    expect(devices.failed(1)).toBe(10_000)
    time.ms += 10_000
    devices.works(1)
    time.ms += 600_000
    expect(devices.failed(1)).toBe(5_000)
  })

  it('fail once, however many engines say so', () => {
    const { time, devices } = states([0, 1])
    devices.failed(1)
    time.ms += 2_000
    expect(devices.failed(1)).toBe(3_000)
  })

  it('are all used where each is held back', () => {
    const { devices } = states([2, 3])
    devices.failed(2)
    devices.failed(3)
    expect(devices.used).toEqual([2, 3])
  })

  it('are told when they are tried again, also where the timer ends before its time', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { time, devices } = states([0, 1])
    const told: (readonly number[])[] = []
    devices.onChange = () => told.push(devices.used)
    devices.failed(1)
    time.ms += 4_990
    vi.advanceTimersByTime(5_000)
    expect(told).toEqual([[0]])
    time.ms += 10
    vi.advanceTimersByTime(10)
    expect(told).toEqual([[0], [0, 1]])
  })

  it('are told whenever that may have changed', () => {
    const { devices } = states([0, 1])
    let told = 0
    devices.onChange = () => void told++
    devices.works(1)
    expect(told).toBe(0)
    devices.failed(1)
    devices.works(1)
    expect(told).toBe(2)
    expect(devices.used).toEqual([0, 1])
  })
})
