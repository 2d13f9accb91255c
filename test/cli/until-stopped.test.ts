import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { StopSignals, type SignalSource } from '../../src/cli/stop-signals.js'
import { untilStopped } from '../../src/cli/until-stopped.js'

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
  const service = {
    stops: 0,
    finish: () => stopped.resolve(),
    stop: () => {
      service.stops += 1
      return stopped.promise
    },
  }
  return service
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
      new StopSignals(source),
    )
    running.finish()
    expect(await ended).toBe(code)
    expect(running.stops).toBe(1)
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
      new StopSignals(source),
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
    expect(await untilStopped(start, () => undefined, new StopSignals(source))).toBe(0)
    expect(running.stops).toBe(1)
  })

  it.each([
    ['SIGTERM', 0],
    ['SIGINT', 130],
  ])('ends a start that would never end on %s, and returns %i', async (signal, code) => {
    const source = new FakeProcess()
    const ended = untilStopped(
      (asked) =>
        new Promise<never>((_, reject) => {
          asked.addEventListener('abort', () => reject(asked.reason as Error))
          source.emit(signal)
        }),
      () => expect.fail('it never ran'),
      new StopSignals(source),
    )
    expect(await ended).toBe(code)
    expect(source.exits).toEqual([])
    expect(source.eventNames()).toEqual([])
  })

  it('passes a failed start on and leaves no listener behind', async () => {
    const source = new FakeProcess()
    await expect(
      untilStopped(
        () => Promise.reject(new Error('no port')),
        () => undefined,
        new StopSignals(source),
      ),
    ).rejects.toThrow('no port')
    expect(source.eventNames()).toEqual([])
  })
})

describe('StopSignals', () => {
  it('keeps a signal that came before the program was loaded', async () => {
    const source = new FakeProcess()
    const signals = new StopSignals(source)
    source.emit('SIGTERM')
    const start = (asked: AbortSignal) => {
      asked.throwIfAborted()
      return Promise.resolve(service())
    }
    expect(await untilStopped(start, () => expect.fail('it never ran'), signals)).toBe(0)
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('lets %s do what it does where nothing runs, also one that has come, with %i', (signal, code) => {
    const source = new FakeProcess()
    const signals = new StopSignals(source)
    source.emit(signal)
    signals.release()
    expect(source.exits).toEqual([code])
    expect(source.eventNames()).toEqual([])
  })
})
