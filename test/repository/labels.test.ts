import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { labelsFromMetadata, readLabelsFile } from '../../src/repository/labels.js'
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

  it("takes a label map of TensorFlow's detection API by its numbers", () => {
    const map = `# classes
      item { name: '/m/1' id: 1 display_name: "hard hat" }
      item: {
        id: 3
        name: "worker's head"
      }`
    expect(readLabelsFile(file(map))).toEqual(['N/A', 'hard hat', 'N/A', "worker's head"])
    expect(() => readLabelsFile(file('item { id: 1 }'))).toThrow('no name for id 1')
    expect(() => readLabelsFile(file('item { name: "a" }'))).toThrow('no id')
    expect(() => readLabelsFile(file('item { id: 1 name: "a" } item { id: 1 name: "b" }'))).toThrow(
      'id 1 twice',
    )
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
    ['a map from 1 on', `{1: 'person', 2: 'car'}`, ['N/A', 'person', 'car']],
    ['a map that leaves a class out', `{0: 'person', 2: 'car'}`, ['person', 'N/A', 'car']],
  ])('reads names from %s', (_, names, labels) => {
    expect(labelsFromMetadata({ names })).toEqual(labels)
  })

  it.each([
    ['there are none', {}],
    ['they are no names', { names: '17' }],
  ])('knows nothing when %s', (_, metadata) => {
    expect(labelsFromMetadata(metadata)).toBeUndefined()
  })
})
