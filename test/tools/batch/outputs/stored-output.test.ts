import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ObjectUploads } from '../../../../src/buckets/object-uploads.js'
import { s3Settings } from '../../../../src/buckets/s3-settings.js'
import { runBatch } from '../../../../src/tools/batch/run-batch.js'
import { outputTarget } from '../../../../src/tools/batch/outputs/output-target.js'
import { StoredOutput } from '../../../../src/tools/batch/outputs/stored-output.js'
import type { Picture } from '../../../../src/tools/scoring/picture-scorer.js'
import { batchOptions, bytesScorer, scoreBytes } from '../../../support/batch-runs.js'
import { type S3Server, startS3 } from '../../../support/s3-server.js'
import { TcpProxy } from '../../../support/tcp-proxy.js'
import { tempDir } from '../../../support/temp-dir.js'

const never = new AbortController().signal
const object = { endpoint: undefined, bucket: 'plant', key: 'scored/out.jsonl' }

/** Pictures of which one cannot be read, and a way to score them into the store. */
function scoring(env: Readonly<Record<string, string>>) {
  const dir = tempDir()
  const inputs = join(dir, 'in')
  mkdirSync(inputs)
  for (let index = 0; index < 5; index += 1) writeFileSync(join(inputs, `${index}.jpg`), `picture ${index}`)
  const [stateDir, errorsPath] = [join(dir, 'out.batch'), join(dir, 'out.batch', 'out.errors.jsonl')]
  const path = join(stateDir, 'out.jsonl')
  const run = (more: Partial<Parameters<typeof batchOptions>[0]> = {}) => {
    const files = [
      { path, suffix: '' },
      { path: errorsPath, suffix: '.errors.jsonl' },
    ]
    const patience = { forMs: 500, signal: never }
    return runBatch({
      ...batchOptions({ inputs: [inputs], out: 's3://plant/scored/out.jsonl', ...more }),
      target: { kind: 'file', path, format: 'jsonl' },
      stored: new StoredOutput({ object, env, files, patience }),
      stateDir,
      errorsPath,
    })
  }
  return { run, path }
}

async function proxied(server: S3Server): Promise<{ proxy: TcpProxy; env: Record<string, string> }> {
  const proxy = await TcpProxy.start(server.port)
  onTestFinished(() => proxy.stop())
  return { proxy, env: { ...server.env, AWS_ENDPOINT_URL: `http://127.0.0.1:${proxy.port}` } }
}

const linesOf = async (server: S3Server, key = object.key) =>
  (await server.get(key)).toString().trimEnd().split('\n')

describe('an output that is an object', () => {
  it('is there when the run is done, and is not written over but with --restart', async () => {
    const server = await startS3('plant')
    const { run, path } = scoring(server.env)
    expect(await run()).toMatchObject({ pictures: 5, complete: true })
    expect(await linesOf(server)).toHaveLength(5)
    expect(existsSync(path)).toBe(false)
    expect(await run()).toMatchObject({ before: true })
    const other = scoring(server.env)
    await expect(other.run()).rejects.toThrow(/s3:\/\/plant\/scored\/out.jsonl is there, and no run/)
    expect(await other.run({ restart: true })).toMatchObject({ pictures: 5 })
    expect(await linesOf(server)).toHaveLength(5)
  }, 60_000)

  it('has what could not be scored beside it', async () => {
    const server = await startS3('plant')
    const score = (picture: Picture) => {
      if (picture.kind === 'file' && Buffer.from(picture.bytes).toString() === 'picture 3')
        throw new Error('no picture')
      return scoreBytes(picture)
    }
    const { run } = scoring(server.env)
    expect(await run({ scorer: bytesScorer(score) })).toMatchObject({ pictures: 4, errors: 1 })
    const lines = await linesOf(server, `${object.key}.errors.jsonl`)
    expect(JSON.parse(lines.join('\n'))).toMatchObject({ item: expect.stringContaining('3.jpg') as string })
  }, 60_000)

  it('R186: a store that is away at the end is waited for, then the same command uploads', async () => {
    const server = await startS3('plant')
    const { proxy, env } = await proxied(server)
    const { run, path } = scoring(env)
    const progress = () => (proxy.fault = { kind: 'reset' })
    await expect(run({ progress })).rejects.toMatchObject({ code: 'GANTRY_BATCH_STOPPED' })
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(5)
    proxy.fault = { kind: 'none' }
    expect(await run()).toMatchObject({ pictures: 5, scored: 0, complete: true })
    expect(await linesOf(server)).toHaveLength(5)
  }, 60_000)

  it('takes what an earlier try has uploaded for its own, and tells what somebody else has', async () => {
    const server = await startS3('plant')
    const { run } = scoring(server.env)
    const scorer = bytesScorer(async (picture) => {
      await server.put(object.key, 'of somebody else')
      return scoreBytes(picture)
    })
    await expect(run({ scorer })).rejects.toThrow(/is there, and no run/)
    expect(await linesOf(server)).toEqual(['of somebody else'])
  }, 60_000)
})

describe('ObjectUploads', () => {
  const partBytes = 5 * 1024 ** 2

  it('R186: uploads in parts, finds its own again, and leaves no upload behind where it is cut', async () => {
    const server = await startS3('plant')
    const { proxy, env } = await proxied(server)
    const path = join(tempDir(), 'large')
    const content = randomBytes(2 * partBytes + 100)
    writeFileSync(path, content)
    const name = { bucket: 'plant', key: 'large' }
    const uploads = new ObjectUploads(s3Settings(env), never, partBytes)
    // The second part is refused: its address is not the one that was signed.
    proxy.fault = { kind: 'damage', text: 'partNumber=2' }
    await expect(uploads.upload(path, name)).rejects.toThrow(/s3:\/\/plant\/large cannot be written/)
    expect(await server.openUploads()).toBe(0)
    // As of a process that was killed.
    await server.beginUpload('large')
    await server.beginUpload('larger')
    proxy.fault = { kind: 'none' }
    expect(await uploads.upload(path, name)).toBe(true)
    expect((await server.get('large')).equals(content)).toBe(true)
    expect(await uploads.upload(path, name)).toBe(true)
    writeFileSync(path, randomBytes(2 * partBytes))
    expect(await uploads.upload(path, name)).toBe(false)
    expect((await server.get('large')).equals(content)).toBe(true)
    expect(await server.openUploads()).toBe(1)
  }, 120_000)
})

it('outputTarget takes an object by the end of its key, and refuses what names none', () => {
  expect(outputTarget('s3://plant/scored/a.parquet')).toEqual({
    kind: 'file',
    path: 'a.parquet',
    format: 'parquet',
    object: { endpoint: undefined, bucket: 'plant', key: 'scored/a.parquet' },
  })
  expect(() => outputTarget('s3://plant/')).toThrow(/names no format/)
  expect(() => outputTarget('s3://p/a.jsonl')).toThrow(/is no name of a bucket/)
})
