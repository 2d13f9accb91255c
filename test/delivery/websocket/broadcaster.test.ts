import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { Broadcaster } from '../../../src/delivery/websocket/broadcaster.js'
import { Rendering } from '../../../src/delivery/websocket/rendering.js'
import { detectionsText } from '../../support/detections.js'

const limits = { chunkClients: 2, maxBacklog: 4, idleLoad: 0.1, busyLoad: 0.5, gatherMs: 50 }

let served: string[]
let through: number[]
let clients: string[]
let load: number
let broadcaster: Broadcaster<string>

beforeEach(() => {
  vi.useFakeTimers()
  served = []
  through = []
  clients = ['a', 'b', 'c']
  load = 0.5
  broadcaster = new Broadcaster<string>(limits, {
    clients: () => clients,
    load: () => load,
    serve: (jobs, to) => served.push(`${jobs.map(({ position }) => position).join('+')} to ${to.join('')}`),
    done: ({ position }) => through.push(position),
    leftOut: ({ position }) => served.push(`without ${position}`),
  })
})
afterEach(() => {
  vi.useRealTimers()
})

function publish(...positions: number[]): void {
  for (const position of positions)
    broadcaster.push({
      position,
      cameraId: 'cam',
      rendering: new Rendering(`${position}`, detectionsText({ seq: position }).json),
      picture: undefined,
      atMs: nowMs(),
    })
}

it('sends at once while the loop has time, however many clients there are, one message after the other', async () => {
  load = 0.1
  clients = [...'abcdefgh']
  publish(1)
  await vi.advanceTimersByTimeAsync(5)
  expect(served).toEqual(['1 to ab', '1 to cd', '1 to ef', '1 to gh'])
  publish(2)
  await vi.advanceTimersByTimeAsync(5)
  expect(through).toEqual([1, 2])
  expect(vi.getTimerCount()).toBe(0)
})

it('gathers for a shorter time where the loop is less busy', async () => {
  load = 0.3
  publish(1)
  await vi.advanceTimersByTimeAsync(11)
  expect(served).toEqual([])
  await vi.advanceTimersByTimeAsync(2)
  expect(through).toEqual([1])
})

it('gathers what is published within a moment while the loop is busy, and serves it together in chunks', async () => {
  publish(1)
  await vi.advanceTimersByTimeAsync(30)
  publish(2)
  expect(served).toEqual([])
  await vi.advanceTimersByTimeAsync(21)
  expect(served).toEqual(['1+2 to ab', '1+2 to c'])
  expect(through).toEqual([1, 2])
  publish(3)
  await vi.advanceTimersByTimeAsync(51)
  expect(served.slice(2)).toEqual(['3 to ab', '3 to c'])
})

it('counts from when the oldest was published, however late it comes', () => {
  broadcaster.push({
    position: 1,
    cameraId: 'cam',
    rendering: new Rendering('1', detectionsText({ seq: 1 }).json),
    picture: undefined,
    atMs: nowMs() - 50,
  })
  expect(served).toEqual(['1 to ab'])
})

it('does not gather more than may wait, and leaves out the oldest of what comes too fast', async () => {
  publish(1, 2, 3, 4, 5)
  expect(served).toEqual(['1+2+3+4+5 to ab'])
  publish(6, 7, 8, 9, 10, 11)
  await vi.advanceTimersByTimeAsync(51)
  expect(served.slice(1)).toEqual([
    '1+2+3+4+5 to c',
    'without 6',
    'without 7',
    '8+9+10+11 to ab',
    '8+9+10+11 to c',
  ])
  expect(through).toEqual([1, 2, 3, 4, 5, 8, 9, 10, 11])
})

it('forgets what it gathered when it is cleared', async () => {
  publish(1)
  broadcaster.clear()
  await vi.advanceTimersByTimeAsync(100)
  expect(served).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})
