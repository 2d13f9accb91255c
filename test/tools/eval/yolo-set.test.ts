import { expect, it } from 'vitest'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readYoloSet } from '../../../src/tools/eval/yolo-set.js'
import { setOf } from '../../support/label-sets.js'

const data = "path: .\ntrain: train/images\nval: valid/images\nnc: 2\nnames: ['helmet', 'head']\n"
const faultOf = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    return error
  }
}

it('reads pictures with their boxes, polygons too, in the order of their names', async () => {
  const dir = await setOf({
    'data.yaml': data,
    'valid/images/b.png': 9,
    'valid/images/a.png': 9,
    'valid/images/deeper/c.png': 9,
    'valid/labels/a.txt': '1 0.5 0.25 0.5 0.1\r\n0 0.1 0.1 0.3 0.1 0.3 0.5 0.1 0.5\n',
    'valid/labels/deeper/c.txt': '',
  })
  const set = readYoloSet(dir, 'val')
  expect(set).toMatchObject({ format: 'yolo', classes: ['helmet', 'head'] })
  expect(set.pictures.map(({ name }) => name)).toEqual([
    'valid/images/a.png',
    'valid/images/b.png',
    'valid/images/deeper/c.png',
  ])
  const boxes = set.pictures[0]!.boxes({ widthPx: 200, heightPx: 100 })
  expect(boxes[0]).toEqual({ class: 1, box: [50, 20, 100, 10], areaPx: 1000, crowd: false })
  expect(boxes[1]!.box.map((side) => Math.round(side * 1e6) / 1e6)).toEqual([20, 10, 40, 40])
  expect(set.notes).toEqual(['1 of 3 pictures have no label file: taken as empty'])
})

it('takes names as a map, a list of pictures, and folders written for another place', async () => {
  const dir = await setOf({
    'data.yaml': 'val: ../valid/images\ntest: test.txt\nnames: {0: helmet, 1: head}\n',
    'valid/images/a.png': 9,
    'valid/labels/a.txt': '0 0.5 0.5 0.1 0.1',
    'test.txt': 'valid/images/a.png\n',
  })
  for (const split of ['val', 'test'] as const) {
    const { classes, pictures } = readYoloSet(join(dir, 'data.yaml'), split)
    expect([classes, pictures.map(({ path }) => path)]).toEqual([
      ['helmet', 'head'],
      [join(dir, 'valid/images/a.png')],
    ])
  }
})

it('names file and line of labels that are none', async () => {
  const lines = [
    '0 0.5 0.5 0.1',
    '7 0.5 0.5 0.1 0.1',
    '0 0.5 x 0.1 0.1',
    '0 320 240 20 20',
    '0 0.5 0.5 0.1 0.1 0.9',
  ]
  const dir = await setOf({
    'data.yaml': data,
    'valid/images/a.png': 9,
    'valid/images/b.png': 9,
    'valid/labels/a.txt': `0 0.5 0.5 0.1 0.1\n${lines.join('\n')}\n`,
    'valid/labels/b.txt': '1.5 0 0 0 0',
  })
  const error = faultOf(() => readYoloSet(dir, 'val'))
  expect(error).toMatchObject({ code: 'GANTRY_LABELS' })
  const labels = join(dir, 'valid/labels')
  expect((error as Error).message.split('\n')).toEqual([
    `${labels}/a.txt:2: 4 numbers, expected class, cx, cy, w, h`,
    `${labels}/a.txt:3: class 7 is not one of 0 to 1, which data.yaml names`,
    `${labels}/a.txt:4: "x" is no number`,
    `${labels}/a.txt:5: 320 is not a share of the picture (0 to 1)`,
    `${labels}/a.txt:6: six numbers: a label has no score; these may be predictions`,
    'and 1 more',
  ])
})

it('leaves boxes without an area out, and tells them, stray labels and other kinds of pictures', async () => {
  const dir = await setOf({
    'data.yaml': data,
    'valid/images/a.png': 9,
    'valid/images/b.webp': 'x',
    'valid/labels/a.txt': '0 0.5 0.5 0 0.1\n0 0.5 0.5 0.1 0.1\n',
    'valid/labels/gone.txt': '',
  })
  const { pictures, notes } = readYoloSet(dir, 'val')
  expect(pictures[0]!.boxes({ widthPx: 10, heightPx: 10 })).toHaveLength(1)
  expect(notes).toEqual([
    `1 label files have no picture, such as ${join(dir, 'valid/labels/gone.txt')}`,
    '1 boxes without an area were left out',
    `1 pictures are neither JPEG nor PNG and were passed over, such as ${join(dir, 'valid/images/b.webp')}`,
  ])
})

it.each([
  ['no folder', {}, '', /no data\.yaml in it/],
  ['no file', {}, 'gone', /gone: no such file or folder/],
  ['no YAML', { 'data.yaml': 'names: [' }, '', /data\.yaml: /],
  ['no names', { 'data.yaml': 'val: x' }, '', /data\.yaml: names: /],
  ['another count', { 'data.yaml': 'nc: 3\nnames: [a]' }, '', /nc is 3, but names has 1/],
  ['a gap', { 'data.yaml': 'names: {0: a, 2: c}' }, '', /names has no class 1/],
  ['no split', { 'data.yaml': 'names: [a]' }, '', /names no pictures for "val"/],
  ['no place', { 'data.yaml': 'names: [a]\nval: images' }, '', /"images" is not there/],
  ['no pictures', { 'data.yaml': 'names: [a]\nval: images', 'images/x.txt': '' }, '', /no pictures in it/],
  [
    'labels of others',
    { 'data.yaml': 'names: [a]\nval: images', 'images/x.png': 1, 'labels/y.txt': '' },
    '',
    /none of 1 pictures has a label file: .*labels\/x\.txt is not there/,
  ],
])('says what is wrong: %s', async (_, files, path, message) => {
  const dir = await setOf(files)
  const error = faultOf(() => readYoloSet(join(dir, path), 'val'))
  expect(error).toMatchObject({ code: 'GANTRY_LABELS' })
  expect((error as Error).message).toMatch(message)
  expect((error as { hint: string }).hint).not.toBe('')
})

it('R66: reads files of Windows editors, and refuses UTF-16 by name', async () => {
  const windows = (text: string) => `\uFEFF${text.replaceAll('\n', '\r\n')}`
  const dir = await setOf({
    'data.yaml': windows('val: list.txt\nnames: [helmet, head]\n'),
    'list.txt': windows('images/a.png\n'),
    'images/a.png': 9,
    'labels/a.txt': windows('1 0.5 0.25 0.5 0.1\n'),
  })
  const [picture] = readYoloSet(dir, 'val').pictures
  expect(picture!.boxes({ widthPx: 200, heightPx: 100 })).toMatchObject([{ class: 1 }])
  writeFileSync(join(dir, 'list.txt'), Buffer.from('\uFEFFimages/a.png\r\n', 'utf16le'))
  expect(() => readYoloSet(dir, 'val')).toThrow(/list\.txt cannot be read: it is UTF-16/)
  writeFileSync(join(dir, 'data.yaml'), Buffer.from('\uFEFFval: list.txt\r\n', 'utf16le'))
  expect(() => readYoloSet(dir, 'val')).toThrow(/data\.yaml cannot be read: it is UTF-16/)
})
