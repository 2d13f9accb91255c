import { describe, expect, it } from 'vitest'
import { Progress } from '../../src/cli/progress.js'

function written() {
  const lines: string[] = []
  return {
    lines,
    err: (text: string) => void lines.push(`${text}\n`),
    rewrite: (text: string) => void lines.push(`~${text}`),
  }
}

describe('progress', () => {
  it('is a line that is rewritten on a terminal, and makes way for others', () => {
    const { lines, err, rewrite } = written()
    const progress = new Progress({ err, rewrite }, false)
    progress.around(() => err('head'))
    progress.show('1')
    progress.show('2')
    progress.around(() => err('row'))
    progress.end()
    progress.end()
    expect(lines).toEqual(['head\n', '~1', '~2', '~', 'row\n', '~2', '~'])
  })

  it('is a line every ten seconds elsewhere', () => {
    const { lines, err } = written()
    let nowMs = 0
    const progress = new Progress({ err }, false, () => nowMs)
    for (; nowMs < 25_000; nowMs += 1_000) progress.show(String(nowMs / 1e3))
    progress.end()
    expect(lines).toEqual(['0\n', '10\n', '20\n'])
  })

  it('is nothing when it is told to be quiet', () => {
    const { lines, err, rewrite } = written()
    const progress = new Progress({ err, rewrite }, true)
    progress.show('1')
    progress.end()
    expect(lines).toEqual([])
  })
})
