import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { labelsFromMetadata, readLabelsFile } from '../../src/inference/labels.js'
import { tempDir } from '../support/temp-dir.js'

function file(text: string): string {
  const path = join(tempDir(), 'labels.txt')
  writeFileSync(path, text)
  return path
}

describe('readLabelsFile', () => {
  it('takes one label per line, whatever the line ends', () => {
    expect(readLabelsFile(file('\uFEFFhelmet\r\nhard hat \r\nperson\r\n\r\n'))).toEqual([
      'helmet',
      'hard hat',
      'person',
    ])
  })

  it('tells where an empty line would shift the classes', () => {
    expect(() => readLabelsFile(file('helmet\n\nperson\n'))).toThrow(/labels\.txt:2: empty line/)
  })

  it('refuses an empty file and a missing one', () => {
    expect(() => readLabelsFile(file('\n'))).toThrow('is empty')
    expect(() => readLabelsFile('/nowhere/labels.txt')).toThrow('cannot read labels')
  })
})

describe('labelsFromMetadata', () => {
  it.each([
    [
      'a Python dictionary',
      `{0: 'person', 1: "driver's cab", 2: 'a\\'b'}`,
      ['person', "driver's cab", "a'b"],
    ],
    ['a JSON object', '{"0": "person", "1": "car"}', ['person', 'car']],
    ['a list', `['person', "car"]`, ['person', 'car']],
  ])('reads names from %s', (_, names, labels) => {
    expect(labelsFromMetadata({ names })).toEqual(labels)
  })

  it.each([
    ['there are none', {}],
    ['a class is left out', { names: "{0: 'a', 2: 'c'}" }],
    ['they are no names', { names: '17' }],
  ])('knows nothing when %s', (_, metadata) => {
    expect(labelsFromMetadata(metadata)).toBeUndefined()
  })
})
