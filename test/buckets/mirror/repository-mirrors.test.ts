import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ObjectStore } from '../../../src/buckets/object-store.js'
import { ObjectStoreError } from '../../../src/buckets/s3-errors.js'
import {
  RepositoryMirrors,
  type RepositoryMirrorsOptions,
} from '../../../src/buckets/mirror/repository-mirrors.js'
import { modelsSchema } from '../../../src/config/models.js'
import { createMirrorMetrics } from '../../../src/metrics/mirror-metrics.js'
import { type S3Server, startS3 } from '../../support/s3-server.js'
import { silentLog } from '../../support/silent-log.js'
import { TcpProxy } from '../../support/tcp-proxy.js'
import { tempDir } from '../../support/temp-dir.js'

const { mirror } = modelsSchema.parse({})
const url = 's3://plant/models'

function mirrorsOf(
  env: RepositoryMirrorsOptions['env'],
  dir: string,
  more: Partial<RepositoryMirrorsOptions> = {},
): RepositoryMirrors {
  const { signal } = new AbortController()
  return new RepositoryMirrors({
    ...{ urls: [url], mirror, dir, reader: 'service', env, log: silentLog(), signal },
    ...more,
  })
}

/** A store with one model of two files, and a proxy in front of it. */
async function plant(): Promise<{ server: S3Server; proxy: TcpProxy; env: Record<string, string> }> {
  const server = await startS3('plant')
  await server.put('models/ppe/config.pbtxt', 'first')
  await server.put('models/ppe/1/model.onnx', 'model one')
  const proxy = await TcpProxy.start(server.port)
  onTestFinished(() => proxy.stop())
  return { server, proxy, env: { ...server.env, AWS_ENDPOINT_URL: `http://127.0.0.1:${proxy.port}` } }
}

const textIn = (dir: string, path: string) => readFileSync(join(dir, path), 'utf8')

/** Objects that were fetched: each is opened once. */
function countFetches(): { keys: string[] } {
  const open = vi.spyOn(ObjectStore.prototype, 'open')
  onTestFinished(() => open.mockRestore())
  return {
    get keys() {
      return open.mock.calls.map(([, { key }]) => key)
    },
  }
}

/** All files of a folder, by their paths. */
const filesOf = (dir: string) =>
  (readdirSync(dir, { recursive: true }) as string[]).filter(
    (path) => !statSync(join(dir, path)).isDirectory(),
  )

describe('RepositoryMirrors', () => {
  it('R180: fetches what is new alone, also after a restart, and removes what is not used', async () => {
    const { server, env } = await plant()
    const dir = tempDir()
    const fetched = countFetches()
    const first = mirrorsOf(env, dir)
    await first.begin()
    const folder = first.folderOf(url)
    expect(folder.endsWith('/models')).toBe(true)
    expect(textIn(folder, 'ppe/1/model.onnx')).toBe('model one')
    await server.put('models/ppe/2/model.onnx', 'model two')
    const second = mirrorsOf(env, dir)
    await second.begin()
    await second.refresh()
    expect(fetched.keys).toHaveLength(3)
    expect(textIn(folder, 'ppe/2/model.onnx')).toBe('model two')
    const { ino } = statSync(join(folder, 'ppe/1/model.onnx'))
    await server.remove('models/ppe/1/model.onnx')
    await second.refresh()
    expect(existsSync(join(folder, 'ppe/1'))).toBe(false)
    // What reads the files of before has ten minutes; then they are gone.
    const trees = join(dirname(dirname(folder)), 'trees')
    expect(readdirSync(trees).length).toBeGreaterThan(1)
    for (const tree of readdirSync(trees)) utimesSync(join(trees, tree), 1, 1)
    await second.refresh()
    expect(readdirSync(trees)).toHaveLength(1)
    expect(filesOf(dir).filter((path) => statSync(join(dir, path)).ino === ino)).toEqual([])
    expect(second.reasons).toEqual([])
  }, 60_000)

  it('R181: is read as before while the store is away, and after a restart; without anything of before it is refused', async () => {
    const { server, proxy, env } = await plant()
    const dir = tempDir()
    const first = mirrorsOf(env, dir)
    await first.begin()
    proxy.fault = { kind: 'reset' }
    await first.refresh()
    expect(first.reasons).toEqual([
      expect.stringMatching(
        /^model repository s3:\/\/plant\/models is read as it was fetched before, since .*cannot be reached/,
      ),
    ])
    const again = mirrorsOf(env, dir)
    await again.begin()
    expect(textIn(again.folderOf(url), 'ppe/1/model.onnx')).toBe('model one')
    expect(again.reasons).toHaveLength(1)
    const other = mirrorsOf(env, tempDir())
    await expect(other.begin()).rejects.toMatchObject({
      code: 'GANTRY_OBJECT_STORE',
      message: expect.stringContaining('s3://plant/models/ cannot be reached') as string,
    })
    proxy.fault = { kind: 'none' }
    await server.put('models/ppe/config.pbtxt', 'second')
    await again.refresh()
    expect(again.reasons).toEqual([])
    expect(textIn(again.folderOf(url), 'ppe/config.pbtxt')).toBe('second')
  }, 60_000)

  it('R181: counts looks and what was fetched, and when it last was as the store has it', async () => {
    const { proxy, env } = await plant()
    const registry = new Registry()
    const mirrors = mirrorsOf(env, tempDir(), { metrics: createMirrorMetrics(registry) })
    const values = async () => {
      const page = await registry.metrics()
      const of = (series: string) =>
        Number(
          page
            .split('\n')
            .find((line) => line.startsWith(series))
            ?.split(' ')
            .at(-1),
        )
      return {
        good: of(`gantry_repository_looks_total{repository="${url}",result="good"}`),
        failed: of(`gantry_repository_looks_total{repository="${url}",result="failed"}`),
        bytes: of('gantry_repository_fetched_bytes_total'),
        atSeconds: of('gantry_repository_last_look_timestamp_seconds'),
      }
    }
    expect(await values()).toEqual({ good: 0, failed: 0, bytes: 0, atSeconds: 0 })
    await mirrors.begin()
    const bytes = 'first'.length + 'model one'.length
    const { atSeconds, ...begun } = await values()
    expect(begun).toEqual({ good: 1, failed: 0, bytes })
    expect(Math.abs(atSeconds - Date.now() / 1_000)).toBeLessThan(60)
    proxy.fault = { kind: 'reset' }
    await mirrors.refresh()
    expect(await values()).toEqual({ good: 1, failed: 1, bytes, atSeconds })
    proxy.fault = { kind: 'none' }
    await mirrors.refresh()
    expect(await values()).toMatchObject({ good: 2, failed: 1, bytes })
  }, 60_000)

  it('R182: takes no mixture of two states: what changes while it is fetched is listed again', async () => {
    const { server, env } = await plant()
    const mirrors = mirrorsOf(env, tempDir())
    await mirrors.begin()
    await server.put('models/ppe/config.pbtxt', 'second')
    const list = vi.spyOn(ObjectStore.prototype, 'list')
    const whileFetched = vi.spyOn(ObjectStore.prototype, 'open').mockImplementationOnce(async () => {
      await server.put('models/ppe/config.pbtxt', 'second, corrected')
      await server.put('models/ppe/1/model.onnx', 'model that fits the second')
      throw new ObjectStoreError('the connection was cut', '', { retryable: true })
    })
    onTestFinished(() => {
      list.mockRestore()
      whileFetched.mockRestore()
    })
    await mirrors.refresh()
    const folder = mirrors.folderOf(url)
    expect(list).toHaveBeenCalledTimes(3)
    // The one that was listed first is there no more when it is fetched.
    expect([textIn(folder, 'ppe/config.pbtxt'), textIn(folder, 'ppe/1/model.onnx')]).toEqual([
      'second, corrected',
      'model that fits the second',
    ])
  }, 60_000)

  it('R182: while it follows, takes a change once two looks in a row have seen it', async () => {
    const { server, env } = await plant()
    const mirrors = mirrorsOf(env, tempDir())
    await mirrors.begin()
    const config = () => textIn(mirrors.folderOf(url), 'ppe/config.pbtxt')
    await server.put('models/ppe/config.pbtxt', 'second')
    await mirrors.refresh(true)
    expect(config()).toBe('first')
    await server.put('models/ppe/config.pbtxt', 'third')
    await mirrors.refresh(true)
    expect(config()).toBe('first')
    await mirrors.refresh(true)
    expect(config()).toBe('third')
  }, 60_000)

  it('R184: an object that is cut on its way goes on where it was, one that stays cut is not taken', async () => {
    const { server, proxy, env } = await plant()
    const dir = tempDir()
    const large = randomBytes(3_000_000)
    await server.put('models/ppe/2/model.onnx', large)
    // Less than comes at once, so that nothing of it is got.
    proxy.fault = { kind: 'cut_replies', afterBytes: 20_000 }
    const mirrors = mirrorsOf(env, dir)
    await expect(mirrors.begin()).rejects.toThrow(
      /s3:\/\/plant\/models\/ppe\/2\/model.onnx cannot be reached/,
    )
    expect(filesOf(dir).filter((path) => path.endsWith('.part'))).toEqual([])
    const open = vi.spyOn(ObjectStore.prototype, 'open')
    onTestFinished(() => open.mockRestore())
    proxy.fault = { kind: 'cut_replies', afterBytes: 1_000_000 }
    await mirrors.begin()
    // What came whole before is not fetched again.
    expect(new Set(open.mock.calls.map(([, { key }]) => key))).toEqual(new Set(['models/ppe/2/model.onnx']))
    const begins = open.mock.calls.map(([, , from = 0]) => from)
    expect(begins.length).toBeGreaterThan(2)
    expect(begins).toEqual([...new Set(begins)].sort((a, b) => a - b))
    expect(readFileSync(join(mirrors.folderOf(url), 'ppe/2/model.onnx')).equals(large)).toBe(true)
  }, 120_000)

  it('R185: an object whose bytes are not those of its digest is not taken, and what was read before stays', async () => {
    const { server, proxy, env } = await plant()
    const mirrors = mirrorsOf(env, tempDir())
    await mirrors.begin()
    await server.put('models/ppe/2/model.onnx', 'model NUMBER two')
    proxy.fault = { kind: 'damage_replies', text: 'NUMBER' }
    await mirrors.refresh()
    expect(mirrors.reasons).toEqual([
      expect.stringMatching(
        /s3:\/\/plant\/models\/ppe\/2\/model.onnx is not what the store says: its ETag \(MD5\) is/,
      ),
    ])
    expect(existsSync(join(mirrors.folderOf(url), 'ppe/2'))).toBe(false)
    // While the store is followed, it is not fetched again at each look.
    const fetched = countFetches()
    await mirrors.refresh(true)
    expect([fetched.keys, mirrors.reasons.length]).toEqual([[], 1])
    proxy.fault = { kind: 'none' }
    await mirrors.refresh()
    expect(textIn(mirrors.folderOf(url), 'ppe/2/model.onnx')).toBe('model NUMBER two')
  }, 120_000)

  it('R185: checks an upload in parts by its checksum, and takes one without any by its length', async () => {
    const { server, proxy, env } = await plant()
    const part = randomBytes(5 * 1024 ** 2)
    await server.putInParts('models/ppe/2/model.onnx', [part, Buffer.from('the END')])
    const content = 'summed UP'
    const sum = createHash('sha256').update(content).digest('base64')
    await server.put('models/ppe/3/model.onnx', content, {
      'x-amz-checksum-sha256': sum,
      'x-amz-sdk-checksum-algorithm': 'SHA256',
    })
    const dir = tempDir()
    proxy.fault = { kind: 'damage_replies', text: 'UP' }
    await expect(mirrorsOf(env, dir).begin()).rejects.toThrow(
      /3\/model.onnx is not what the store says: its sha256 is/,
    )
    proxy.fault = { kind: 'none' }
    const warn = vi.fn()
    const mirrors = mirrorsOf(env, dir, {
      log: { ...silentLog(), warn } as unknown as RepositoryMirrorsOptions['log'],
    })
    await mirrors.begin()
    expect(statSync(join(mirrors.folderOf(url), 'ppe/2/model.onnx')).size).toBe(part.length + 7)
    expect(textIn(mirrors.folderOf(url), 'ppe/3/model.onnx')).toBe(content)
  }, 120_000)

  it('R183: what needs more room than the disk has is refused with the largest object, before it is fetched', async () => {
    const { env } = await plant()
    const list = vi.spyOn(ObjectStore.prototype, 'list').mockImplementation(async function* () {
      await Promise.resolve()
      yield { key: 'models/ppe/1/model.onnx', bytes: 2 ** 60, etag: 'e' }
    })
    onTestFinished(() => list.mockRestore())
    const fetched = countFetches()
    await expect(mirrorsOf(env, tempDir()).begin()).rejects.toMatchObject({
      message: expect.stringMatching(
        /needs \d+ bytes more .* largest object is models\/ppe\/1\/model.onnx/,
      ) as string,
      hint: expect.stringContaining('models.mirror.path') as string,
    })
    expect(fetched.keys).toEqual([])
  }, 60_000)

  it('S45: writes nothing outside of its folder, whatever the keys are', async () => {
    const { env } = await plant()
    const dir = join(tempDir(), 'mirror')
    const list = vi.spyOn(ObjectStore.prototype, 'list').mockImplementation(async function* () {
      await Promise.resolve()
      yield { key: 'models/../../escaped', bytes: 1, etag: 'e' }
    })
    onTestFinished(() => list.mockRestore())
    await expect(mirrorsOf(env, dir).begin()).rejects.toThrow(/leads out of its folder/)
    expect(filesOf(dirname(dir)).some((path) => path.includes('escaped'))).toBe(false)
  }, 60_000)

  it('keeps what a command fetches apart from what a service reads', async () => {
    const { server, env } = await plant()
    const dir = tempDir()
    const service = mirrorsOf(env, dir)
    await service.begin()
    await server.put('models/ppe/config.pbtxt', 'second')
    const command = mirrorsOf(env, dir, { reader: 'command' })
    const fetched = countFetches()
    await command.begin()
    expect(fetched.keys).toEqual(['models/ppe/config.pbtxt'])
    expect(textIn(command.folderOf(url), 'ppe/config.pbtxt')).toBe('second')
    expect(textIn(service.folderOf(url), 'ppe/config.pbtxt')).toBe('first')
  }, 60_000)

  it('finds a store by the URL alone, as Triton writes it', async () => {
    const { server, env } = await plant()
    const named = `s3://127.0.0.1:${server.port}/plant/models/`
    const { AWS_ENDPOINT_URL: _, ...login } = env
    const mirrors = mirrorsOf(login, tempDir(), { urls: [named] })
    await mirrors.begin()
    expect(textIn(mirrors.folderOf(named), 'ppe/config.pbtxt')).toBe('first')
  }, 60_000)
})
