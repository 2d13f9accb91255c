import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, it } from 'vitest'
import { type DatasetOptions, writeDataset } from '../../sim/dataset/dataset.js'
import { DatasetError } from '../../sim/errors.js'

const count = 7

it('writes pictures and labels, goes on where it was cut off, and mixes no two sets of options', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-dataset-'))
  try {
    const seen: number[] = []
    const write = (more: Partial<DatasetOptions> = {}): Promise<void> =>
      writeDataset({
        folder,
        count,
        widthPx: 320,
        seed: 3,
        sites: ['press-line'],
        subject: 'site',
        onPicture: (done, total) => {
          expect(total).toBe(count)
          seen.push(done)
        },
        ...more,
      })
    await write()
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7])
    const train = await namesIn(join(folder, 'train/images'))
    expect(train.map((name) => name.split('.')[0])).toEqual(
      (await namesIn(join(folder, 'train/labels'))).map((name) => name.split('.')[0]),
    )
    expect(train).toHaveLength(6)
    expect(await namesIn(join(folder, 'valid/images'))).toHaveLength(1)
    for (const name of train) {
      const { width, height } = await sharp(join(folder, 'train/images', name)).metadata()
      expect([width, height]).toEqual([320, 180])
    }

    const [first = '', second = ''] = train
    const before = await readFile(join(folder, 'train/images', first))
    const kept = await stat(join(folder, 'train/images', second))
    await rm(join(folder, 'train/labels', first.replace('.jpg', '.txt')))
    seen.length = 0
    await write()
    expect(seen).toEqual([count])
    expect(await readFile(join(folder, 'train/images', first))).toEqual(before)
    expect((await stat(join(folder, 'train/images', second))).mtimeMs).toBe(kept.mtimeMs)

    await expect(write({ seed: 4 })).rejects.toThrow(DatasetError)
    await expect(write({ seed: 4 })).rejects.toThrow('--seed 4')
    expect(await namesIn(join(folder, 'train/images'))).toEqual(train)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 180_000)

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).sort()
}
