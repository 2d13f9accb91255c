import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const rows = [
  ...readFileSync(join(root, 'docs/failure-modes.md'), 'utf8').matchAll(/^\| ([RS]\d+) \|.*$/gm),
].map(([line, id = '']) => ({
  id,
  files: [...line.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file),
}))

it('speaks of every failure once', () => {
  const numbers = (letter: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`)
  const delivery = ['R140', 'R141', 'R142', 'R143', 'R144']
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 136), ...delivery, ...numbers('S', 37)])
  const numbers = (letter: string, last: number, first = 1) =>
    Array.from({ length: last - first + 1 }, (_, index) => `${letter}${first + index}`)
  expect(rows.map(({ id }) => id)).toEqual([
    ...numbers('R', 136),
    ...numbers('R', 167, 160),
    ...numbers('S', 37),
  ])
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 136), 'R170', ...numbers('S', 37)])
  const ofTraces = ['R180', 'R181', 'R182', 'R183', 'R184']
  expect(rows.map(({ id }) => id)).toEqual([
    ...[...numbers('R', 136), ...ofTraces],
    ...[...numbers('S', 37), 'S40', 'S41'],
  ])
})

it.each(rows)('$id names files with a test of that name', ({ id, files }) => {
  const without = files.filter((file) => {
    const path = join(root, file)
    return !existsSync(path) || !new RegExp(`['\`][^'\`]*\\b${id}[:,]`).test(readFileSync(path, 'utf8'))
  })
  expect(without).toEqual([])
})
