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
  expect(rows.map(({ id }) => id)).toEqual([...numbers('R', 188), ...numbers('S', 46)])
})

it.each(rows)('$id names files with a test of that name', ({ id, files }) => {
  const without = files.filter((file) => {
    const path = join(root, file)
    return !existsSync(path) || !new RegExp(`['\`][^'\`]*\\b${id}[:,]`).test(readFileSync(path, 'utf8'))
  })
  expect(without).toEqual([])
})
