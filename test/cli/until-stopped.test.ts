import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { untilStopped, type SignalSource } from '../../src/cli/until-stopped.js'

class FakeProcess extends EventEmitter implements SignalSource {
  readonly exits: number[] = []
  exit(code: number): void {
    this.exits.push(code)
  }
}

function deferred(): { promise: Promise<void>; resolve(): void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve: () => resolve() }
}

function service() {
  const stopped = deferred()
  const asked: number[] = []
  return {
    asked,
    finish: () => stopped.resolve(),
    stop: (drainMs: number) => {
      asked.push(drainMs)
      return stopped.promise
    },
  }
}

describe('untilStopped', () => {
  it.each([
    ['SIGTERM', 0],
    ['SIGHUP', 0],
    ['SIGINT', 130],
  ])('stops in good order on %s and returns %i', async (signal, code) => {
    const source = new FakeProcess()
    const running = service()
    const ended = untilStopped(
      () => Promise.resolve(running),
      () => source.emit(signal),
      source,
    )
    running.finish()
    expect(await ended).toBe(code)
    expect(running.asked).toEqual([expect.any(Number)])
    expect(source.exits).toEqual([])
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('R20: ends at once on a second signal, %s, with %i', async (second, code) => {
    const source = new FakeProcess()
    const running = service()
    const ended = untilStopped(
      () => Promise.resolve(running),
      () => {
        source.emit('SIGTERM')
        source.emit(second)
      },
      source,
    )
    running.finish()
    await ended
    expect(source.exits).toEqual([code])
  })

  it('stops a service that was still starting when the signal came', async () => {
    const source = new FakeProcess()
    const running = service()
    running.finish()
    const start = () => {
      source.emit('SIGTERM')
      return Promise.resolve(running)
    }
    expect(await untilStopped(start, () => undefined, source)).toBe(0)
    expect(running.asked).toHaveLength(1)
  })

  it('passes a failed start on and leaves no listener behind', async () => {
    const source = new FakeProcess()
    await expect(
      untilStopped(
        () => Promise.reject(new Error('no port')),
        () => undefined,
        source,
      ),
    ).rejects.toThrow('no port')
    expect(source.eventNames()).toEqual([])
  })
})
