import { describe, expect, it } from 'vitest'
import { listedFiles, printOfFiles } from '../../../src/buckets/mirror/listed-files.js'
import type { ListedObject } from '../../../src/buckets/object-store.js'

const object = (key: string, etag = 'e'): ListedObject => ({ key, bytes: 1, etag })

async function* listed(objects: readonly ListedObject[]): AsyncGenerator<ListedObject, void> {
  await Promise.resolve()
  yield* objects
}

const files = (...objects: readonly ListedObject[]) =>
  listedFiles(listed(objects), 's3://plant/models/', 'models/')

describe('listedFiles', () => {
  it('takes the objects of models by their paths, and leaves out what belongs to none', async () => {
    const found = await files(
      object('models/'),
      object('models/README.md'),
      object('models/.git/HEAD'),
      object('models/ppe/1/'),
      object('models/ppe/config.pbtxt'),
      object('models/ppe/1/model.onnx'),
    )
    expect(found.map(({ path }) => path)).toEqual(['ppe/1/model.onnx', 'ppe/config.pbtxt'])
  })

  it.each([
    ['../x/model.onnx', /leads out/],
    ['ppe/../../x', /leads out/],
    ['ppe/./model.onnx', /leads out/],
    ['/etc/passwd', /is empty/],
    ['ppe//model.onnx', /is empty/],
    ['ppe/1\\..\\model.onnx', /backslash/],
    ['ppe/1/a\u001b[2J', /control character/],
    [`ppe/1/${'x'.repeat(256)}`, /too long/],
  ])('S45: refuses the key %j, and names it', async (path, reason) => {
    const key = `models/${path}`
    const refused = files(object('models/ppe/1/model.onnx'), object(key))
    await expect(refused).rejects.toMatchObject({
      code: 'GANTRY_OBJECT_STORE',
      message: expect.stringMatching(reason) as string,
    })
    await expect(refused).rejects.toThrow(`object ${JSON.stringify(key)} of s3://plant/models/`)
  })

  it.each([
    ['models/ppe/1/model.onnx', 'models/ppe/1/Model.onnx'],
    ['models/ppe/1/model.onnx', 'models/PPE/2/model.onnx'],
    ['models/ppe/1', 'models/ppe/1/model.onnx'],
    ['models/ppe/1/model.onnx', 'models/ppe/1'],
  ])('S45: refuses %j beside %j, which is the same place on some disks', async (one, other) => {
    await expect(files(object(one), object(other))).rejects.toThrow(/collides/)
  })

  it('R183: says of a prefix without models that there are none', async () => {
    await expect(files(object('models/README.md'))).rejects.toThrow(/s3:\/\/plant\/models\/ holds no models/)
  })

  it('tells one state of the store from another by key, ETag and length', async () => {
    const print = async (...objects: readonly ListedObject[]) => printOfFiles(await files(...objects))
    const one = await print(object('models/ppe/1/a'), object('models/ppe/1/b'))
    expect(await print(object('models/ppe/1/b'), object('models/ppe/1/a'))).toBe(one)
    expect(await print(object('models/ppe/1/a'), object('models/ppe/1/b', 'other'))).not.toBe(one)
    expect(await print(object('models/ppe/1/a'))).not.toBe(one)
  })
})
