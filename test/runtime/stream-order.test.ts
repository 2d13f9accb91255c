import { describe, expect, it } from 'vitest'
import { StreamOrder } from '../../src/runtime/stream-order.js'

describe('StreamOrder', () => {
  it('tells outcomes of a stream in the order of their starts', () => {
    const order = new StreamOrder()
    const told: string[] = []
    const [first, second, third] = ['a', 'a', 'a'].map((stream) => order.enter(stream))
    third?.(() => told.push('third'))
    second?.(() => told.push('second'))
    expect(told).toEqual([])
    first?.(() => told.push('first'))
    expect(told).toEqual(['first', 'second', 'third'])
  })

  it('lets no stream wait for another', () => {
    const order = new StreamOrder()
    const told: string[] = []
    order.enter('a')
    order.enter('b')(() => told.push('b'))
    expect(told).toEqual(['b'])
  })

  it('keeps the order when telling an outcome starts the next run', () => {
    const order = new StreamOrder()
    const told: number[] = []
    const first = order.enter('a')
    const second = order.enter('a')
    second(() => told.push(2))
    first(() => {
      told.push(1)
      order.enter('a')(() => told.push(3))
    })
    expect(told).toEqual([1, 2, 3])
  })
})
