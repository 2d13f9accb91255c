import { expect, it } from 'vitest'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readCocoSet } from '../../../src/tools/eval/coco-set.js'
import { setOf } from '../../support/label-sets.js'

const instances = {
  images: [
    { id: 7, file_name: 'b.png', width: 64, height: 64 },
    { id: 3, file_name: 'a.png', width: 64, height: 64 },
  ],
  annotations: [
    { id: 1, image_id: 7, category_id: 18, bbox: [1, 2, 3, 4], area: 7.5, iscrowd: 1 },
    { id: 2, image_id: 7, category_id: 1, bbox: [1, 2, 3, 4] },
    { id: 3, image_id: 7, category_id: 1, bbox: [1, 2, 0, 4] },
  ],
  categories: [
    { id: 1, name: 'person' },
    { id: 18, name: 'dog' },
  ],
}

async function read(
  change: Readonly<Record<string, unknown>> = {},
  place = 'annotations/instances_val2017.json',
) {
  const json = JSON.stringify({ ...instances, ...change })
  const dir = await setOf({ [place]: json, 'val2017/a.png': 1, 'val2017/b.png': 2, 'other/x.png': 1 })
  return { dir, set: (images?: string) => readCocoSet(join(dir, place), images && join(dir, images)) }
}

it('reads pictures by id, crowds, areas of masks, and finds the folder where COCO has it', async () => {
  const { dir, set } = await read()
  const { classes, pictures, notes, format } = set()
  expect({ classes, notes, format }).toEqual({
    classes: ['person', 'dog'],
    notes: ['1 boxes without an area were left out'],
    format: 'coco',
  })
  expect(pictures.map(({ path }) => path)).toEqual([join(dir, 'val2017/a.png'), join(dir, 'val2017/b.png')])
  expect(pictures[0]!.boxes(pictures[0]!.size!)).toEqual([])
  expect(pictures[1]!.boxes(pictures[1]!.size!)).toEqual([
    { class: 1, box: [1, 2, 3, 4], areaPx: 7.5, crowd: true },
    { class: 0, box: [1, 2, 3, 4], areaPx: 12, crowd: false },
  ])
  expect(set('other').pictures[0]!.path).toBe(join(dir, 'other/a.png'))
})

it.each(['val2017', '.'])('takes %s as the folder of pictures whose names begin with it', async (images) => {
  const named = instances.images.map((image) => ({ ...image, file_name: `val2017/${image.file_name}` }))
  const { dir, set } = await read({ images: named })
  const paths = [join(dir, 'val2017/a.png'), join(dir, 'val2017/b.png')]
  expect(set(images).pictures.map(({ path }) => path)).toEqual(paths)
  expect(set().pictures.map(({ path }) => path)).toEqual(paths)
})

it.each([
  [
    'an unknown image',
    { annotations: [{ image_id: 1, category_id: 1, bbox: [0, 0, 1, 1] }] },
    /annotations\[0\]: no image 1/,
  ],
  [
    'an unknown category',
    { annotations: [{ image_id: 7, category_id: 2, bbox: [0, 0, 1, 1] }] },
    /annotations\[0\]: no category 2/,
  ],
  ['no annotations', { annotations: [] }, /no annotations in it/],
  ['no images', { images: [] }, /images: /],
  [
    'boxes of another form',
    { annotations: [{ image_id: 7, category_id: 1, bbox: [0, 0, 1] }] },
    /annotations\.0\.bbox/,
  ],
  ['an id twice', { images: [instances.images[0], instances.images[0]] }, /same id twice/],
  [
    'pictures elsewhere',
    { images: [{ id: 7, file_name: 'gone.png', width: 1, height: 1 }, instances.images[1]] },
    /its pictures are not there: no gone\.png in/,
  ],
])('says what is wrong: %s', async (_, change, message) => {
  const { set } = await read(change)
  expect(() => set()).toThrow(message)
  expect(() => set()).toThrow(expect.objectContaining({ code: 'GANTRY_LABELS' }) as Error)
})

it('says what is no JSON', async () => {
  const dir = await setOf({ 'x.json': '{' })
  expect(() => readCocoSet(join(dir, 'x.json'))).toThrow(/x\.json: .*JSON/)
  expect(() => readCocoSet(join(dir, 'gone.json'))).toThrow(/gone\.json: ENOENT/)
})

it('R66: reads a file behind a byte order mark, and refuses UTF-16 by name', async () => {
  const text = JSON.stringify(instances)
  const files = { 'set.json': `\uFEFF${text}`, 'a.png': 1, 'b.png': 1 }
  const dir = await setOf(files)
  expect(readCocoSet(join(dir, 'set.json')).classes).toEqual(['person', 'dog'])
  writeFileSync(join(dir, 'set.json'), Buffer.from(`\uFEFF${text}`, 'utf16le'))
  expect(() => readCocoSet(join(dir, 'set.json'))).toThrow(/set\.json: it is UTF-16.*save it as UTF-8/)
})
