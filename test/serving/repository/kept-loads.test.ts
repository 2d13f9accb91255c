import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { KeptLoads } from '../../../src/serving/repository/kept-loads.js'
import { writeUploadedModel } from '../../../src/serving/repository/uploaded-model.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

it('tells the next process what clients loaded, in their order, with what they sent', async () => {
  const dir = join(tempDir(), 'models')
  const kept = new KeptLoads(dir, silentLog())
  const upload = await writeUploadedModel(dir, 'sent', new Map([['1/model.onnx', Uint8Array.of(1)]]))
  kept.loaded('sent', '{}', upload.folder)
  kept.loaded('a', undefined, undefined)
  kept.loaded('b', '{"max_batch_size":4}', undefined)
  kept.loaded('a', '{"max_batch_size":8}', undefined)
  kept.unloaded('b')
  const next = new KeptLoads(dir, silentLog())
  expect(next.loads()).toMatchObject([
    { name: 'sent', config: '{}', upload: { folder: upload.folder } },
    { name: 'a', config: '{"max_batch_size":8}', upload: undefined },
  ])
  expect(['a', 'b', 'c'].map((name) => next.has(name))).toEqual([true, true, false])
})

it('removes what clients sent and nothing serves', async () => {
  const dir = join(tempDir(), 'models')
  const kept = new KeptLoads(dir, silentLog())
  const [one, two] = await Promise.all(
    ['one', 'two'].map((name) =>
      writeUploadedModel(dir, name, new Map([['1/model.onnx', Uint8Array.of(1)]])),
    ),
  )
  kept.loaded('one', '{}', one?.folder)
  new KeptLoads(dir, silentLog())
  expect(existsSync(one?.folder.dir ?? '')).toBe(true)
  expect(existsSync(two?.folder.dir ?? '')).toBe(false)
})

it('begins with nothing where the file is damaged', () => {
  const dir = join(tempDir(), 'models')
  mkdirSync(dir)
  writeFileSync(join(dir, 'loads.json'), '{"a":')
  expect(new KeptLoads(dir, silentLog()).loads()).toEqual([])
  expect(readdirSync(dir)).toEqual(['loads.json'])
})
