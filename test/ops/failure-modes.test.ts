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
  expect(rows.map(({ id }) => id)).toEqual([
    ...numbers('R', 89),
    ...numbers('R', 104).slice(99),
    ...numbers('S', 29),
    ...[...numbers('R', 89), 'R108', 'R109', 'R111', 'R112'],
    ...[...numbers('S', 29), 'S37'],
  ])
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 90), ...numbers('S', 29)])
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 91), ...numbers('S', 30)])
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 89), 'R105', 'R106', 'R107', ...numbers('S', 29)])
    ...['R95', 'R96', 'R97', 'R98'],
    ...numbers('S', 29),
    ...['S34', 'S35', 'S36'],
  ])
})

it.each(rows)('$id names files with a test of that name', ({ id, files }) => {
  const without = files.filter((file) => {
    const path = join(root, file)
    return !existsSync(path) || !new RegExp(`['\`][^'\`]*\\b${id}[:,]`).test(readFileSync(path, 'utf8'))
  })
  expect(without).toEqual([])
})
