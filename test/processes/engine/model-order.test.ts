import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ModelOrder } from '../../../src/processes/engine/model-order.js'

it('tells results of a model at once while there is no other', () => {
  const order = new ModelOrder<string>()
  const told: number[] = []
  for (const seq of [1, 2, 3]) order.enter(seq, 'a')
  for (const seq of [2, 1, 3]) order.end(seq, () => told.push(seq))
  expect(told).toEqual([2, 1, 3])
})

it('holds those of the next model until the last one of the model before has ended', () => {
  const order = new ModelOrder<string>()
  const told: number[] = []
  const end = (seq: number) => order.end(seq, () => told.push(seq))
  order.enter(1, 'a')
  order.enter(2, 'a')
  order.enter(3, 'b')
  order.enter(4, 'a')
  end(3)
  end(4)
  end(2)
  expect(told).toEqual([2])
  end(1)
  expect(told).toEqual([2, 1, 3, 4])
})

it('tells of a number that it does not know at once', () => {
  const order = new ModelOrder<string>()
  const told: number[] = []
  order.enter(1, 'a')
  order.end(7, () => told.push(7))
  expect(told).toEqual([7])
})

it('tells each once, and none of a model before the last of the model before', () => {
  const frames = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(frames, fc.infiniteStream(fc.nat()), (models, random) => {
      const order = new ModelOrder<string>()
      const turnOf = models.map((_, seq) => models.slice(1, seq + 1).filter((m, i) => m !== models[i]).length)
      models.forEach((model, seq) => order.enter(seq, model))
      const left = models.map((_, seq) => seq)
      const told: number[] = []
      while (left.length > 0) {
        const [seq] = left.splice(random.next().value % left.length, 1)
        order.end(seq!, () => told.push(seq!))
      }
      expect([...told].sort((a, b) => a - b)).toEqual(models.map((_, seq) => seq))
      const turns = told.map((seq) => turnOf[seq]!)
      expect(turns).toEqual([...turns].sort((a, b) => a - b))
    }),
  )
})
