import { describe, expect, it } from 'vitest'
import { ChangeOrder, type Claims, everything } from '../../../src/serving/repository/change-order.js'

/** Changes that end when they are told to, and which of them have begun. */
function rig() {
  const closing = new AbortController()
  const order = new ChangeOrder(closing.signal)
  const began: string[] = []
  const ends = new Map<string, () => void>()
  const ask = (name: string, claims: Claims | typeof everything | (() => Claims)) =>
    order.take(
      () => (typeof claims === 'function' ? claims() : claims),
      () => {
        began.push(name)
        return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
      },
    )
  const end = (name: string) => ends.get(name)?.()
  /** Whatever can begin has. */
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { closing, order, began, ask, end, settled }
}

const changes = (...names: string[]): Claims => ({ changes: names, needs: [] })
const needing = (name: string, ...needs: string[]): Claims => ({ changes: [name], needs })

describe('changes', () => {
  it('of different models are done side by side', async () => {
    const { began, ask, end, settled } = rig()
    const both = [ask('a', changes('a')), ask('b', changes('b'))]
    await settled()
    expect(began).toEqual(['a', 'b'])
    end('b')
    expect(await both[1]).toBe('b')
    end('a')
    expect(await both[0]).toBe('a')
  })

  it('of one model are done in the order in which they were asked for, and keep no others waiting', async () => {
    const { began, ask, end, settled } = rig()
    const all = ['load', 'unload', 'load again'].map((name) => ask(name, changes('a')))
    const other = ask('other', changes('b'))
    await settled()
    expect(began).toEqual(['load', 'other'])
    for (const name of ['load', 'unload', 'load again']) {
      end(name)
      await settled()
    }
    end('other')
    expect(await Promise.all([...all, other])).toEqual(['load', 'unload', 'load again', 'other'])
    expect(began).toEqual(['load', 'other', 'unload', 'load again'])
  })

  it('share what they need, and nobody changes it meanwhile', async () => {
    const { began, ask, end, settled } = rig()
    const all = [
      ask('first', needing('first', 'shared')),
      ask('second', needing('second', 'shared')),
      ask('unload', changes('shared')),
      ask('third', needing('third', 'shared')),
    ]
    await settled()
    expect(began).toEqual(['first', 'second'])
    end('first')
    await settled()
    expect(began).toEqual(['first', 'second'])
    end('second')
    await settled()
    expect(began).toEqual(['first', 'second', 'unload'])
    end('unload')
    await settled()
    end('third')
    expect(await Promise.all(all)).toEqual(['first', 'second', 'unload', 'third'])
  })

  it('that are done alone wait for all before them, and all behind wait for them', async () => {
    const { began, ask, end, settled } = rig()
    const all = [ask('a', changes('a')), ask('start', everything), ask('b', changes('b'))]
    await settled()
    expect(began).toEqual(['a'])
    end('a')
    await settled()
    expect(began).toEqual(['a', 'start'])
    end('start')
    await settled()
    end('b')
    await Promise.all(all)
    expect(began).toEqual(['a', 'start', 'b'])
  })

  it('are asked again what they need before they begin', async () => {
    const { began, ask, end, settled } = rig()
    let needs = ['x']
    const all = [
      ask('y', changes('y')),
      ask('x', changes('x')),
      ask('ensemble', () => needing('ensemble', ...needs)),
    ]
    await settled()
    needs = ['y']
    end('x')
    await settled()
    expect(began).toEqual(['y', 'x'])
    end('y')
    await settled()
    end('ensemble')
    await Promise.all(all)
    expect(began).toEqual(['y', 'x', 'ensemble'])
  })

  it('that fail keep none behind them', async () => {
    const { order } = rig()
    const failed = order.take(
      () => changes('a'),
      () => Promise.reject(new Error('no')),
    )
    const next = order.take(
      () => changes('a'),
      () => Promise.resolve('next'),
    )
    await expect(failed).rejects.toThrow('no')
    expect(await next).toBe('next')
  })

  it('that wait are refused at the end, which waits for those that have begun', async () => {
    const { closing, order, began, ask, end, settled } = rig()
    const running = ask('running', changes('a'))
    const waiting = ask('waiting', changes('a'))
    closing.abort(new Error('the server is stopping'))
    await expect(waiting).rejects.toThrow('the server is stopping')
    await expect(ask('late', changes('b'))).rejects.toThrow('the server is stopping')
    let isIdle = false
    const idle = order.idle().then(() => (isIdle = true))
    await settled()
    expect(isIdle).toBe(false)
    end('running')
    await idle
    expect(await running).toBe('running')
    expect(began).toEqual(['running'])
  })

  it('come through in their thousands', async () => {
    const { order } = rig()
    const done: number[] = []
    await Promise.all(
      Array.from({ length: 3_000 }, (_, index) =>
        order.take(
          () => changes('a'),
          () => Promise.resolve(done.push(index)),
        ),
      ),
    )
    expect(done).toEqual(Array.from({ length: 3_000 }, (_, index) => index))
  })
})
