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
  const numbers = (letter: string, first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, index) => `${letter}${first + index}`)
  expect(rows.map(({ id }) => id)).toEqual([
    ...numbers('R', 1, 136),
    ...numbers('R', 140, 144),
    ...numbers('R', 150, 152),
    ...numbers('R', 160, 167),
    'R170',
    ...numbers('R', 180, 184),
    ...numbers('S', 1, 37),
    ...numbers('S', 40, 41),
  ])
})

it.each(rows)('$id names files with a test of that name', ({ id, files }) => {
  const without = files.filter((file) => {
    const path = join(root, file)
    return !existsSync(path) || !new RegExp(`['\`][^'\`]*\\b${id}[:,]`).test(readFileSync(path, 'utf8'))
  })
  expect(without).toEqual([])
})
