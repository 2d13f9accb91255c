import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { labelsOfMetadata, readLabelsFile } from '../../src/repository/labels.js'
import { tempDir } from '../support/temp-dir.js'

function file(text: string | Uint8Array): string {
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

  it.each([
    ['a list', '[\r\n  "helmet",\r\n  "h\\u00e9lm"\r\n]\r\n', ['helmet', 'hélm']],
    ['a map', '\uFEFF{"0": "helmet", "2": "head"}', ['helmet', 'N/A', 'head']],
  ])('takes %s in JSON', (_, text, labels) => {
    expect(readLabelsFile(file(text))).toEqual(labels)
  })

  it('takes a first label in brackets for one of several lines', () => {
    expect(readLabelsFile(file('[unused]\nhelmet\n'))).toEqual(['[unused]', 'helmet'])
    expect(() => readLabelsFile(file('{0: "helmet"'))).toThrow('is not understood: its brackets')
  })

  it('R66: refuses what is not UTF-8 by name', () => {
    expect(() => readLabelsFile(file(Buffer.from('\uFEFFhelmet\r\n', 'utf16le')))).toThrow(/it is UTF-16/)
    expect(() => readLabelsFile(file(Buffer.from('head\nh\xe9lmet\n', 'latin1')))).toThrow(
      /labels\.txt:2: it is not UTF-8/,
    )
  })

  it('refuses an empty file and a missing one', () => {
    expect(() => readLabelsFile(file('\n'))).toThrow('is empty')
    expect(() => readLabelsFile('/nowhere/labels.txt')).toThrow('cannot read labels')
  })
})

describe('labelsOfMetadata', () => {
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
    ['a map with a class that has no name', `{0: 'person', 1: None, 2: 'car'}`, ['person', 'N/A', 'car']],
  ])('reads names from %s', (_, names, labels) => {
    expect(labelsOfMetadata({ names })).toEqual({ labels })
  })

  it.each(['labels', 'classes', 'class_names', 'categories'])('looks for them under %s too', (key) => {
    expect(labelsOfMetadata({ [key]: 'helmet,head' })).toEqual({ labels: ['helmet', 'head'] })
  })

  it('takes a number for how many there are', () => {
    expect(labelsOfMetadata({})).toEqual({})
    expect(labelsOfMetadata({ classes: '80' })).toEqual({})
    expect(labelsOfMetadata({ classes: '2', labels: 'a,b' })).toEqual({ labels: ['a', 'b'] })
  })

  it.each([
    ['17', 'it is a number'],
    ["{0: 'helmet', 1: 'head'", 'do not close'],
    ["{'helmet', 'head'}", 'a set, whose order says nothing'],
    ["{0: 'helmet', 0: 'head'}", 'number 0 twice'],
    ['{}', 'it has no name'],
  ])('R66: tells that %s is not understood', (names, why) => {
    const { labels, problem } = labelsOfMetadata({ names })
    expect(labels).toBeUndefined()
    expect(problem).toContain(`names is ${JSON.stringify(names)}`)
    expect(problem).toContain(why)
    expect(problem).toContain('add a labels.txt')
  })
})
