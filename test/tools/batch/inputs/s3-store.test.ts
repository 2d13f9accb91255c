import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runBatch } from '../../../../src/tools/batch/run-batch.js'
import { S3Store } from '../../../../src/tools/batch/inputs/s3-store.js'
import { batchOptions, itemsOf } from '../../../support/batch-runs.js'
import { startS3 } from '../../../support/s3-server.js'
import { tempDir } from '../../../support/temp-dir.js'
import { makeClip } from '../../../support/video-clips.js'

const never = new AbortController().signal
const pictures = { endpoint: undefined, bucket: 'pictures', key: '' }

async function all(names: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = []
  for await (const name of names) found.push(name)
  return found
}

describe('S3Store', () => {
  it('lists more than a page of keys with any letters, and reads each', async () => {
    const server = await startS3('pictures')
    const odd = ['a b/1+2.jpg', 'a b/%41&<ä>.jpg', "a b/it's (1)!*.png"]
    for (const key of odd) await server.put(key, `bytes of ${key}`)
    for (let index = 0; index < 10; index += 1) await server.put(`many/${index}.jpg`, 'x')
    const store = new S3Store(server.env, never, 3)
    expect((await all(store.list(pictures, 'a b/'))).sort()).toEqual([...odd].sort())
    expect(new Set(await all(store.list(pictures, 'many/'))).size).toBe(10)
    for (const key of odd)
      expect(Buffer.from((await store.read(`s3://pictures/${key}`)).bytes).toString()).toBe(`bytes of ${key}`)
  }, 60_000)

  it('says what is wrong: a key, a bucket, credentials, a store that is away', async () => {
    const server = await startS3('pictures')
    const store = new S3Store(server.env, never)
    await expect(store.read('s3://pictures/gone.jpg')).rejects.toMatchObject({
      code: 'GANTRY_BATCH_INPUT',
      message: expect.stringContaining('NoSuchKey') as string,
      retryable: false,
    })
    await expect(all(store.list(store.parse('s3://absent'), ''))).rejects.toThrow(/NoSuchBucket/)
    const stranger = new S3Store({ ...server.env, AWS_SECRET_ACCESS_KEY: 'wrong' }, never)
    await expect(all(stranger.list(pictures, ''))).rejects.toMatchObject({
      message: expect.stringContaining('SignatureDoesNotMatch') as string,
      hint: expect.stringContaining('AWS_ACCESS_KEY_ID') as string,
    })
    await server.close()
    await expect(store.read('s3://pictures/gone.jpg')).rejects.toMatchObject({ retryable: true })
  })

  it('is scored like a folder: a prefix, a glob, an object and a video', async () => {
    const dir = tempDir()
    const server = await startS3('plant')
    for (let index = 0; index < 6; index += 1)
      await server.put(`cam/${index % 2}/${index}.jpg`, `picture ${index}`)
    await server.put('cam/notes.txt', 'no picture')
    await server.put('clip.mp4', readFileSync(await makeClip(join(dir, 'clip.mp4'), { seconds: 2 })))
    const run = async (inputs: string[]) => {
      const out = join(tempDir(), 'out.jsonl')
      await runBatch(batchOptions({ inputs, out, env: server.env }))
      return itemsOf(out).sort()
    }
    expect(await run(['s3://plant/cam/'])).toHaveLength(6)
    expect(await run(['s3://plant/cam/*/[01].jpg'])).toEqual([
      's3://plant/cam/0/0.jpg',
      's3://plant/cam/1/1.jpg',
    ])
    const frames = await run(['s3://plant/clip.mp4', 's3://plant/cam/0/2.jpg'])
    expect(frames).toContain('s3://plant/cam/0/2.jpg')
    expect(frames).toContain('s3://plant/clip.mp4#1/0.000')
    expect(frames.length).toBeGreaterThan(9)
  })
})
