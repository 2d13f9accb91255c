import { expect, it, vi } from 'vitest'
import { startLater } from '../../../src/runtime/instances/start-later.js'
import { recordingLog } from '../../support/silent-log.js'

it('R46: starts an instance once there is room, tried ever more rarely and told once', async () => {
  const { log, lines } = recordingLog()
  const begunMs = performance.now()
  const triesMs: number[] = []
  const onIdle = vi.fn()
  await startLater(new Error('full'), {
    instance: 'm#1',
    log,
    stopped: new AbortController().signal,
    start: () => {
      triesMs.push(performance.now() - begunMs)
      return triesMs.length < 4 ? Promise.reject(new Error('full')) : Promise.resolve()
    },
    onIdle,
    firstMs: 4,
  })
  // A timer may be a millisecond early.
  for (const [index, atLeastMs] of [3, 10, 25, 55].entries())
    expect(triesMs[index]).toBeGreaterThanOrEqual(atLeastMs)
  expect(triesMs).toHaveLength(4)
  expect(onIdle).toHaveBeenCalledOnce()
  expect(lines.filter(({ level }) => Number(level) >= 30).map(({ msg }) => msg)).toEqual([
    'instance cannot be started now, the others work: it is tried again',
    'instance works, too',
  ])
})

it('R46: ends with its model', async () => {
  const stopped = new AbortController()
  const start = vi.fn(() => Promise.resolve())
  const { log } = recordingLog()
  const options = { instance: 'm#1', log, stopped: stopped.signal, start, onIdle: vi.fn() }
  const over = startLater(new Error('full'), options)
  stopped.abort()
  await over
  expect(start).not.toHaveBeenCalled()
})
