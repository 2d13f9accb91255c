import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import type { BatchLine } from '../../../../src/messages/batch-line.js'
import type { ScoredItem } from '../../../../src/tools/batch/outputs/batch-output.js'
import { FileOutput, type FileFormat } from '../../../../src/tools/batch/outputs/file-output.js'
import { LineFile } from '../../../../src/tools/batch/outputs/line-file.js'
import { tempDir } from '../../../support/temp-dir.js'

const model = { name: 'ppe', version: '1' }
const size = { widthPx: 640, heightPx: 480 }
const score = Math.fround(0.87)

const lines: readonly BatchLine[] = [
  {
    item: 'a "b", c.jpg',
    file: 'a "b", c.jpg',
    ...size,
    quality: 'ok',
    model,
    detections: [
      {
        label: 'helmet',
        score,
        boxPx: { x1: 1, y1: 2, x2: 11, y2: 22 },
        attributes: [{ name: 'helmet_colour', value: 'yellow', score: 0.9 }],
      },
      { label: 'class_9', score: 0.5, boxPx: { x1: 0, y1: 0, x2: 5, y2: 5 } },
    ],
  },
  {
    item: 'v.mp4#2/0.200',
    file: 'v.mp4',
    frame: 2,
    timeMs: 200,
    ...size,
    quality: 'ok',
    model,
    detections: [],
  },
]
const results = lines.map((line): ScoredItem => ({ line, capturedAtMs: 0, inferMs: 0 }))

async function written(format: FileFormat): Promise<string> {
  const dir = tempDir()
  const path = join(dir, 'out')
  const output = new FileOutput({ path, format, workPath: join(dir, 'work'), labels: ['person', 'helmet'] })
  await output.open(0)
  for (const result of results) output.add(result)
  await output.flush()
  await output.complete()
  await output.close()
  return path
}

describe('FileOutput', () => {
  it('writes JSONL as it is', async () => {
    const text = readFileSync(await written('jsonl'), 'utf8')
      .trim()
      .split('\n')
    expect(text.map((line) => JSON.parse(line) as BatchLine)).toEqual(lines)
  })

  it('writes CSV: a row for each detection, one without any for a picture where nothing was found', async () => {
    expect(readFileSync(await written('csv'), 'utf8').split('\n')).toEqual([
      'item,file,frame,time_ms,width_px,height_px,label,score,x1,y1,x2,y2,attributes',
      `"a ""b"", c.jpg","a ""b"", c.jpg",,,640,480,helmet,${score},1,2,11,22,"{""helmet_colour"":""yellow""}"`,
      '"a ""b"", c.jpg","a ""b"", c.jpg",,,640,480,class_9,0.5,0,0,5,5,',
      'v.mp4#2/0.200,v.mp4,2,200,640,480,,,,,,,',
      '',
    ])
  })

  it('writes a COCO document: the labels of the model first, boxes as corner and size', async () => {
    expect(JSON.parse(readFileSync(await written('coco'), 'utf8'))).toEqual({
      info: { description: 'gantry batch' },
      images: [
        { id: 1, file_name: 'a "b", c.jpg', width: 640, height: 480 },
        { id: 2, file_name: 'v.mp4#2/0.200', width: 640, height: 480 },
      ],
      categories: [
        { id: 1, name: 'person' },
        { id: 2, name: 'helmet' },
        { id: 3, name: 'class_9' },
      ],
      annotations: [
        {
          id: 1,
          image_id: 1,
          category_id: 2,
          bbox: [1, 2, 10, 20],
          area: 200,
          iscrowd: 0,
          score,
          attributes: [{ name: 'helmet_colour', value: 'yellow', score: 0.9 }],
        },
        { id: 2, image_id: 1, category_id: 3, bbox: [0, 0, 5, 5], area: 25, iscrowd: 0, score: 0.5 },
      ],
    })
  })

  it('writes Parquet with the columns of CSV', async () => {
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(await written('parquet')) })
    const none = { frame: null, time_ms: null }
    const picture = { item: 'a "b", c.jpg', file: 'a "b", c.jpg', ...none, width_px: 640, height_px: 480 }
    expect(rows).toEqual([
      {
        ...picture,
        label: 'helmet',
        score,
        x1: 1,
        y1: 2,
        x2: 11,
        y2: 22,
        attributes: '{"helmet_colour":"yellow"}',
      },
      { ...picture, label: 'class_9', score: 0.5, x1: 0, y1: 0, x2: 5, y2: 5, attributes: null },
      {
        ...{ item: 'v.mp4#2/0.200', file: 'v.mp4', frame: 2, time_ms: 200, width_px: 640, height_px: 480 },
        ...{ label: null, score: null, x1: null, y1: null, x2: null, y2: null, attributes: null },
      },
    ])
  })

  it.each(['jsonl', 'csv', 'coco', 'parquet'] as const)(
    'makes whole files of nothing: %s',
    async (format) => {
      const dir = tempDir()
      const path = join(dir, 'out')
      const output = new FileOutput({ path, format, workPath: join(dir, 'work'), labels: [] })
      await output.open(0)
      await output.flush()
      await output.complete()
      await output.close()
      const text = readFileSync(path, 'utf8')
      if (format === 'coco')
        expect(JSON.parse(text)).toMatchObject({ images: [], annotations: [], categories: [] })
      if (format === 'csv') expect(text.split('\n')).toHaveLength(2)
      if (format === 'parquet')
        expect(await parquetReadObjects({ file: await asyncBufferFromFile(path) })).toEqual([])
    },
  )

  it.each(['coco', 'parquet'] as const)(
    'leaves the old %s document where the disk is full',
    async (format) => {
      const dir = tempDir()
      const path = join(dir, 'out')
      const output = new FileOutput({ path, format, workPath: join(dir, 'work'), labels: [] })
      await output.open(0)
      for (const result of results) output.add(result)
      await output.flush()
      symlinkSync('/dev/full', join(dir, 'work.out'))
      await expect(output.complete()).rejects.toThrow(/the disk is full/)
      expect(existsSync(path)).toBe(false)
      await output.complete()
      expect(existsSync(path)).toBe(true)
      await output.close()
    },
  )
})

describe('LineFile', () => {
  it('cuts off what was not counted, and refuses a file that lost what was', async () => {
    const path = join(tempDir(), 'lines')
    const first = new LineFile(path, 'head')
    await first.open(0)
    first.add('one')
    const counted = await first.flush()
    first.add('two')
    await first.flush()
    await first.close()
    const second = new LineFile(path, 'head')
    await second.open(counted)
    second.add('three')
    expect(await second.flush()).toBe(15)
    await second.close()
    expect(readFileSync(path, 'utf8')).toBe('head\none\nthree\n')
    await expect(new LineFile(path).open(100)).rejects.toMatchObject({ code: 'GANTRY_BATCH_STATE' })
    await expect(new LineFile(`${path}-gone`).open(1)).rejects.toMatchObject({ code: 'GANTRY_BATCH_STATE' })
  })

  it('R53: says that the disk is full, and counts nothing of it', async () => {
    const dir = tempDir()
    mkdirSync(join(dir, 'a'))
    symlinkSync('/dev/full', join(dir, 'lines'))
    const file = new LineFile(join(dir, 'lines'))
    await file.open(0)
    file.add('one')
    await expect(file.flush()).rejects.toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringContaining('the disk is full') as string,
    })
    expect(await file.flush()).toBe(0)
    await file.close()
  })
})
