import { expect, it } from 'vitest'
import { KnownShapes } from '../../../src/backends/onnxruntime/known-shapes.js'

const input = (name: string, ...shape: number[]) => ({ name, shape, parts: [] })

it('R44: tells the first run with shapes, and one with others than the run before', () => {
  const shapes = new KnownShapes()
  const a = [input('x', 1, 3, 64, 64)]
  const b = [input('x', 1, 3, 32, 128)]
  expect([a, a, b, b, a, a].map((inputs) => shapes.next(inputs, 1, 0))).toEqual([
    'first',
    undefined,
    'first',
    undefined,
    'changed',
    undefined,
  ])
})

it('R44: keeps sizes of batches apart, whatever they are filled up from', () => {
  const shapes = new KnownShapes()
  const batch = (items: number, rows: number) => shapes.next([input('x', items, 3)], rows, rows)
  expect([batch(1, 1), batch(3, 4), batch(4, 4), batch(1, 1), batch(2, 4)]).toEqual([
    'first',
    'first',
    undefined,
    undefined,
    undefined,
  ])
})

it('R44: takes inputs in any order', () => {
  const shapes = new KnownShapes()
  const [x, yy] = [input('x', 1, 2, 3), input('yy', 1, 3)]
  expect([shapes.next([x, yy], 1, 0), shapes.next([yy, x], 1, 0)]).toEqual(['first', undefined])
})
