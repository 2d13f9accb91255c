import { describe, expect, it } from 'vitest'
import { YamlDocument } from '../../src/config/yaml-document.js'

const problemsOf = (text: string) =>
  new YamlDocument('pipeline.yaml', text)
    .problems()
    .map(({ line, column, message }) => ({ line, column, message }))

describe('a pipeline file without end', () => {
  it.each([
    ['a section', 'name: x\nserver: &s\n  tls: *s\n', 3, 8],
    ['a list', 'cameras: &c [ *c ]\n', 1, 15],
    ['a list around a section', 'cameras: &c\n  - { id: a, more: { all: *c } }\n', 2, 27],
    ['a merge', 'server: &s { <<: *s }\n', 1, 18],
  ])('S20: is refused where the alias stands: %s', (_, text, line, column) => {
    expect(problemsOf(text)).toEqual([
      { line, column, message: expect.stringContaining('stands inside of what it names') as string },
    ])
  })

  it.each([
    ['lists', '['.repeat(20_000) + ']'.repeat(20_000)],
    ['sections', '{ a: '.repeat(20_000) + '1' + '}'.repeat(20_000)],
  ])('S20: is refused in words of people where %s are nested', (_, value) => {
    const [problem] = problemsOf(`cameras: ${value}\n`)
    expect(problem?.message).toBe('sections and lists are nested too deeply')
  })

  it('still reads an alias beside what it names', () => {
    const document = new YamlDocument('pipeline.yaml', 'a: &x { b: 1 }\nc: *x\nd: { <<: *x, e: 2 }\n')
    expect(document.problems()).toEqual([])
    expect(document.values()).toEqual({ a: { b: 1 }, c: { b: 1 }, d: { b: 1, e: 2 } })
  })
})
