import { describe, expect, it } from 'vitest'
import { WarmSizes } from '../../../src/runtime/instances/warm-sizes.js'

type Asked = Readonly<{ instance: number; size: number; end: (error?: Error) => void }>

/** Sizes of instances that warm one when the test says so. */
function rig(sizes: readonly number[]) {
  const up = new Set<number>()
  const asked: Asked[] = []
  const leftOut: unknown[] = []
  const seen: number[][] = []
  const cost = (size: number) => ({ size, ms: size * 2 })
  const warm = new WarmSizes({
    sizes,
    isUp: (instance) => up.has(instance),
    warm: (instance, size) =>
      new Promise((resolve, reject) =>
        asked.push({ instance, size, end: (error) => (error ? reject(error) : resolve(cost(size))) }),
      ),
    onChange: () => seen.push(usable()),
    onLeftOut: (of, error) => leftOut.push([of, (error as Error).message]),
  })
  const usable = () => warm.usable.map(({ size }) => size)
  const joined: number[] = []
  const join = async (instance: number, count: number) => {
    await warm.started(instance, {
      all: sizes,
      warm: sizes.slice(0, count).map(cost),
      run: (size) => {
        joined.push(size)
        return Promise.resolve(cost(size))
      },
    })
    up.add(instance)
    warm.joins(instance)
  }
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const end = async (error?: Error) => {
    asked.shift()?.end(error)
    await settled()
  }
  const waiting = () => asked.map(({ instance, size }) => `${instance}: ${size}`)
  return { warm, up, leftOut, seen, usable, join, joined, end, waiting, settled }
}

describe('sizes of batches', () => {
  it('are warmed the smallest first, on one instance at a time, and usable once all have them', async () => {
    const { warm, seen, usable, join, end, waiting } = rig([1, 4, 8])
    await join(0, 1)
    await join(1, 1)
    expect([usable(), warm.inUse.toCome, waiting()]).toEqual([[1], [4, 8], []])
    warm.goOn()
    const order: string[][] = []
    while (waiting().length > 0) {
      order.push(waiting())
      await end()
    }
    expect(order).toEqual([['0: 4'], ['1: 4'], ['0: 8'], ['1: 8']])
    expect(seen).toEqual([[1], [1, 4], [1, 4, 8]])
    expect([warm.usable.at(-1), warm.inUse.toCome]).toEqual([{ size: 8, ms: 16 }, []])
  })

  it('stay usable when an instance comes that lacks them: it gets them first', async () => {
    const { warm, usable, join, joined, end, waiting } = rig([1, 4, 8])
    await join(0, 1)
    warm.goOn()
    await end()
    expect(usable()).toEqual([1, 4])
    await join(1, 1)
    expect([joined, usable()]).toEqual([[4], [1, 4]])
    await end()
    expect(waiting()).toEqual(['1: 8'])
    await end()
    expect(usable()).toEqual([1, 4, 8])
  })

  it('are left out from the first that does not run', async () => {
    const { warm, leftOut, usable, join, end, waiting } = rig([1, 4, 8, 16])
    await join(0, 1)
    warm.goOn()
    await end()
    await end(new Error('out of memory'))
    expect([usable(), warm.inUse.toCome, waiting(), leftOut]).toEqual([
      [1, 4],
      [],
      [],
      [[[8, 16], 'out of memory']],
    ])
  })

  it('wait for no instance that ended while it warmed one', async () => {
    const { warm, up, leftOut, usable, join, end, waiting } = rig([1, 4])
    await join(0, 1)
    await join(1, 1)
    warm.goOn()
    up.delete(0)
    await end(new Error('ended'))
    expect([waiting(), leftOut]).toEqual([['1: 4'], []])
    await end()
    expect(usable()).toEqual([1, 4])
    await join(0, 2)
    expect([usable(), waiting()]).toEqual([[1, 4], []])
  })

  it('wait for no instance that takes batches as they are', async () => {
    const { warm, up, usable, join, end, waiting } = rig([1, 4])
    await join(0, 1)
    await join(1, 1)
    // It came back without a GPU.
    up.add(1)
    warm.joins(1)
    warm.goOn()
    expect(waiting()).toEqual(['0: 4'])
    await end()
    expect([usable(), waiting()]).toEqual([[1, 4], []])
  })

  it('are warmed no more once all instances have ended', async () => {
    const { up, warm, leftOut, usable, join, end, waiting } = rig([1, 4, 8])
    await join(0, 1)
    warm.goOn()
    up.delete(0)
    await end(new Error('it stops'))
    expect([waiting(), leftOut, usable()]).toEqual([[], [], [1]])
  })
})
