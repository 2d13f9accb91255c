import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cameraSchema, type CameraConfig, newCameraSchema } from '../../src/config/camera.js'
import { CameraDirectory, type DirectoryDeps } from '../../src/cameras/camera-directory.js'
import { CameraStore } from '../../src/cameras/camera-store.js'
import { EngineLoads } from '../../src/cameras/engine-loads.js'
import { emptyFrameCounts } from '../../src/vision/accounting.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'

const url = 'rtsp://admin:secret@127.0.0.1:554/live'

describe('CameraDirectory', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gantry-directory-'))
  })
  afterEach(async () => {
    await rm(dir, { recursive: true, force: true })
  })

  const directory = (engines = 1, settings: Partial<DirectoryDeps> = {}) =>
    new CameraDirectory({
      store: new CameraStore(dir),
      metrics: createServiceMetrics(),
      engines,
      mediaRoot: dir,
      cameraNetworks: { allow: [], deny: [] },
      loopbackClosed: false,
      ...settings,
    })
  const camera = (id: string, more: object = {}) => newCameraSchema.parse({ id, url, ...more })

  it('gives each camera to the engine that has the fewest', async () => {
    const cameras = directory(2)
    for (const id of ['a', 'b', 'c']) await cameras.add(camera(id))
    await cameras.remove('a')
    const { engine } = await cameras.add(camera('d'))
    expect([...cameras].map((entry) => [entry.config.id, entry.engine])).toEqual([
      ['b', 1],
      ['c', 0],
      ['d', engine],
    ])
    expect(engine).toBeLessThan(2)
  })

  it('gives cameras to engines on other GPUs than one that is left, and shares them again', async () => {
    const loads = new EngineLoads(2, true)
    const cameras = directory(2, { loads })
    for (const id of ['a', 'b', 'c', 'd']) await cameras.add(camera(id))
    const engines = () => [...cameras].map(({ engine }) => engine)
    expect(engines()).toEqual([0, 1, 0, 1])
    loads.left(1)
    for (const entry of cameras) if (entry.engine === 1) entry.movesTo(cameras.engineFor(entry), 'left')
    expect(engines()).toEqual([0, 0, 0, 0])
    expect((await cameras.add(camera('e'))).engine).toBe(0)
    loads.runs(1, 1)
    for (let move = cameras.nextMove(() => true); move; move = cameras.nextMove(() => true))
      move.entry.movesTo(move.to, 'less busy')
    expect(engines().filter((engine) => engine === 1)).toHaveLength(2)
  })

  it('counts as lost what an engine had not ended when its camera moved', async () => {
    const entry = await directory(2).add(camera('a'))
    entry.ledger.report({ ...emptyFrameCounts(), received: 5, inferred: 3 })
    entry.movesTo(1, 'left')
    expect(entry.ledger.total).toMatchObject({ received: 5, inferred: 3, lost: 2 })
    entry.ledger.report({ ...emptyFrameCounts(), received: 2, inferred: 2 })
    expect(entry.ledger.total).toMatchObject({ received: 7, inferred: 5, lost: 2 })
    expect(entry.view().status).toMatchObject({ state: 'connecting', reason: 'left' })
  })

  it('refuses cameras without engines, and leaves those that are kept where they are', async () => {
    await directory().add(camera('kept', { persist: true }))
    const cameras = directory(0)
    await cameras.load([])
    expect(cameras.size).toBe(0)
    await expect(cameras.add(camera('a', { persist: true }))).rejects.toMatchObject({
      code: 'GANTRY_ENGINE_UNAVAILABLE',
      message: 'this service takes no cameras: it was started with engines: 0',
    })
    const again = directory()
    await again.load([])
    expect([...again].map(({ config }) => config.id)).toEqual(['kept'])
  })

  it('changes what a patch names, takes away what it sets to null, and leaves the rest', async () => {
    const cameras = directory()
    await cameras.add(camera('a', { name: 'Dock', sampleFps: 3, maxWidthPx: 320 }))
    const { config } = await cameras.patch('a', { sampleFps: 7, maxWidthPx: null })
    expect(config).toEqual(cameraSchema.parse({ id: 'a', url, name: 'Dock', sampleFps: 7 }))
  })

  it('keeps the password when a client sends back the masked URL it was shown', async () => {
    const cameras = directory()
    const { config } = (await cameras.add(camera('a'))).view()
    expect(config.url).not.toContain('secret')
    expect((await cameras.patch('a', { url: config.url })).config.url).toBe(url)
  })

  describe('with a login beside its URL', () => {
    const plain = 'rtsp://127.0.0.1:554/live'
    const login = { username: 'us@er', password: 'se#cret' }
    const setting = (field: string) => ({ code: 'GANTRY_CAMERA_SETTING', field })

    it('S14: shows nothing of it, and keeps it when a client sends back what it was shown', async () => {
      const cameras = directory()
      const { config } = (await cameras.add(camera('a', { url: plain, ...login }))).view()
      expect(config).toMatchObject({ url: plain, username: '***', password: '***' })
      expect((await cameras.patch('a', { ...config, sampleFps: 2 })).config).toMatchObject(login)
      expect((await cameras.patch('a', { enabled: false })).config).toMatchObject(login)
      expect((await cameras.patch('a', { password: 'new', username: '***' })).config).toMatchObject({
        ...login,
        password: 'new',
      })
    })

    it('S14: is kept over a restart, in a file for its user alone', async () => {
      const first = directory()
      await first.add(camera('a', { url: plain, ...login, persist: true }))
      const second = directory()
      await second.load([])
      expect(second.get('a').config).toMatchObject(login)
    })

    it('S14: is taken away with null, and put into the URL or beside it, not both', async () => {
      const cameras = directory()
      await cameras.add(camera('a', { url: plain, ...login }))
      await expect(cameras.patch('a', { url })).rejects.toMatchObject({
        ...setting('username'),
        message: 'username stands beside url, which holds a login too',
      })
      await expect(cameras.patch('a', { password: null })).rejects.toMatchObject(setting('password'))
      await expect(cameras.patch('a', { username: null })).rejects.toMatchObject(setting('username'))
      expect(cameras.get('a').config).toMatchObject(login)
      const { config } = await cameras.patch('a', { url, username: null, password: null })
      expect(config).toEqual(cameraSchema.parse({ id: 'a', url }))
      await expect(cameras.patch('a', login)).rejects.toMatchObject(setting('username'))
      expect((await cameras.patch('a', { url: plain, ...login })).config).toMatchObject(login)
    })

    it.each([
      [{ url: 'push:', ...login }, setting('username')],
      [{ url: plain, username: 'a' }, setting('password')],
      [{ url: plain, password: 'a' }, setting('username')],
      [{ url: plain, username: '***', password: '***' }, setting('username')],
      [{ url: 'rtsp://***@127.0.0.1:554/live' }, { code: 'GANTRY_CAMERA_URL', field: 'url' }],
      [{ url: plain, analyseUrl: url, ...login }, setting('username')],
    ])('S14: is refused where it cannot be meant: %#', async (settings, refused) => {
      await expect(directory().add(camera('a', settings))).rejects.toMatchObject(refused)
      const file = [cameraSchema.parse({ id: 'c', ...settings })]
      if (refused.code === 'GANTRY_CAMERA_URL')
        await expect(directory().load(file)).rejects.toMatchObject(refused)
    })
  })

  it('S13: treats the URL that is analysed as it treats the other', async () => {
    const analyseUrl = 'rtsp://admin:other-secret@127.0.0.1:554/sub'
    const cameras = directory()
    const { config } = (await cameras.add(camera('a', { analyseUrl }))).view()
    expect(JSON.stringify(config)).not.toContain('secret')
    expect((await cameras.patch('a', config)).config).toMatchObject({ url, analyseUrl })
    const refused = { code: 'GANTRY_CAMERA_URL', field: 'analyseUrl' }
    for (const wrong of ['pipe:0', 'http://169.254.169.254/', '/etc/passwd', 'none.mp4']) {
      await expect(cameras.patch('a', { analyseUrl: wrong })).rejects.toMatchObject(refused)
      await expect(cameras.add(camera('b', { analyseUrl: wrong }))).rejects.toMatchObject(refused)
      const file = [cameraSchema.parse({ id: 'c', url, analyseUrl: wrong })]
      await expect(directory().load(file)).rejects.toMatchObject(refused)
    }
    await expect(cameras.patch('a', { url: 'push:' })).rejects.toMatchObject({
      ...{ code: 'GANTRY_CAMERA_SETTING', field: 'analyseUrl' },
    })
    expect((await cameras.patch('a', { analyseUrl: null })).config.analyseUrl).toBeUndefined()
  })

  it('R34: refuses what pushed pictures cannot be decoded as, at the field', async () => {
    const cameras = directory()
    await cameras.add(camera('a', { url: 'push:' }))
    const refused = { code: 'GANTRY_CAMERA_SETTING', field: 'decode' }
    await expect(cameras.patch('a', { decode: 'keyframes' })).rejects.toMatchObject(refused)
    await expect(cameras.add(camera('b', { url: 'push:', decode: 'fast' }))).rejects.toMatchObject(refused)
    expect((await cameras.patch('a', { decode: 'auto' })).config.decode).toBe('auto')
  })

  it('changes nothing when it refuses', async () => {
    const cameras = directory()
    await cameras.add(camera('a'))
    await expect(cameras.patch('a', { url: 'pipe:0' })).rejects.toMatchObject({ code: 'GANTRY_CAMERA_URL' })
    await expect(cameras.add(camera('a'))).rejects.toMatchObject({ code: 'GANTRY_CAMERA_EXISTS' })
    await expect(cameras.remove('b')).rejects.toMatchObject({ code: 'GANTRY_CAMERA_NOT_FOUND' })
    expect(cameras.get('a').config.url).toBe(url)
    expect(cameras.size).toBe(1)
  })

  it('has after a restart the cameras of the file and those that were to be kept, the kept ones as they were', async () => {
    const fromFile = [cameraSchema.parse({ id: 'file', url })]
    const before = directory()
    await before.load(fromFile)
    await before.add(camera('kept', { persist: true }))
    await before.add(camera('passing'))
    await before.patch('file', { sampleFps: 9, persist: true })
    const after = directory()
    await after.load(fromFile)
    expect([...after].map(({ config, origin }) => [config.id, config.sampleFps, origin]).sort()).toEqual([
      ['file', 9, 'file'],
      ['kept', 5, 'api'],
    ])
  })

  it('has a kept camera that cannot be opened any more, so that it can be removed', async () => {
    const before = directory()
    await before.load([])
    await writeFile(join(dir, 'gone.mp4'), '')
    await before.add(camera('kept', { url: 'gone.mp4', persist: true }))
    await rm(join(dir, 'gone.mp4'))
    const after = directory()
    await after.load([])
    expect(after.views().map(({ id }) => id)).toEqual(['kept'])
    await after.remove('kept')
  })

  describe('of a service that other machines reach', () => {
    const closed = { loopbackClosed: true }

    it.each(['rtsp://127.0.0.1:6379/', 'http://[::1]/', 'http://2130706433/', 'http://[::ffff:127.0.0.1]/'])(
      'takes no camera at %s from the API',
      async (loopback) => {
        const cameras = directory(1, closed)
        const refused = { code: 'GANTRY_CAMERA_URL' }
        await expect(cameras.add(camera('a', { url: loopback }))).rejects.toMatchObject(refused)
        await cameras.add(camera('b', { url: 'push:' }))
        await expect(cameras.patch('b', { url: loopback })).rejects.toMatchObject(refused)
      },
    )

    it('S13: opens no other URL of a camera of the file at loopback', async () => {
      const cameras = directory(1, closed)
      const analyseUrl = 'rtsp://127.0.0.1/sub'
      await cameras.load([cameraSchema.parse({ id: 'file', url, analyseUrl })])
      expect([url, analyseUrl].map((each) => cameras.loopbackClosedFor('file', each))).toEqual([false, false])
      expect(cameras.loopbackClosedFor('other', url)).toBe(true)
      for (const setting of ['url', 'analyseUrl'])
        await expect(cameras.patch('file', { [setting]: 'rtsp://127.0.0.1:6379/' })).rejects.toMatchObject({
          ...{ code: 'GANTRY_CAMERA_URL', field: setting },
        })
    })

    it('opens what its file names, and what cameraNetworks allows', async () => {
      const cameras = directory(1, closed)
      await cameras.load([cameraSchema.parse({ id: 'file', url })])
      expect(cameras.loopbackClosedFor('file', url)).toBe(false)
      const { config } = await cameras.patch('file', { url: 'rtsp://camera.example/1' })
      expect(cameras.loopbackClosedFor('file', config.url)).toBe(true)
      const cameraNetworks = { allow: ['127.0.0.0/8'], deny: [] }
      await directory(1, { ...closed, cameraNetworks }).add(camera('a'))
    })
  })

  it('counts for a removed camera until its engine has let it go, and tells its records from those of its successor', async () => {
    const cameras = directory()
    const first = await cameras.add(camera('a'))
    await cameras.remove('a')
    const second = await cameras.add(camera('a'))
    expect(cameras.leaving('a')).toBe(first)
    expect(second.life).not.toBe(first.life)
    await cameras.remove('a')
    cameras.left(first)
    expect(cameras.leaving('a')).toBe(second)
    cameras.engineGone(second.engine)
    expect(cameras.leaving('a')).toBeUndefined()
  })

  it('gives a camera that is added again to the engine that still lets it go', async () => {
    const cameras = directory(2)
    const { engine } = await cameras.add(camera('a'))
    await cameras.remove('a')
    await cameras.add(camera('b'))
    expect((await cameras.add(camera('a'))).engine).toBe(engine)
  })

  describe('of a node of a cluster', () => {
    /** Keeps what it is told, somewhere else. */
    function elsewhere() {
      const kept = new Map<string, number>()
      return {
        kept,
        load: () => Promise.resolve([]),
        save: (_: unknown, change: Readonly<{ id: string; config?: CameraConfig }>) => {
          if (change.config === undefined) kept.delete(change.id)
          else kept.set(change.id, change.config.sampleFps)
          return Promise.resolve()
        },
      }
    }

    it('keeps every camera, whether that is asked for or not, and tells what has changed alone', async () => {
      const store = elsewhere()
      const cameras = directory(1, { store, keepsAll: true })
      await cameras.add(camera('a', { sampleFps: 2 }))
      await cameras.add(camera('b', { sampleFps: 3, persist: true }))
      await cameras.patch('a', { sampleFps: 4, persist: false })
      expect(store.kept).toEqual(new Map([['a', 4], ['b', 3]])) // prettier-ignore
      await cameras.remove('b')
      expect([...store.kept.keys()]).toEqual(['a'])
      expect(cameras.get('a').persist).toBe(true)
    })

    it('follows and releases by the word of whoever keeps them, without telling it', async () => {
      const store = elsewhere()
      const cameras = directory(1, { store, keepsAll: true })
      const config = cameraSchema.parse({ id: 'a', url })
      const entry = cameras.follow(config)
      expect(entry?.config).toEqual(config)
      expect(cameras.follow({ ...config })).toBeUndefined()
      expect(cameras.follow({ ...config, sampleFps: 1 })).toBe(entry)
      expect(cameras.get('a').config.sampleFps).toBe(1)
      expect(cameras.release('a')).toBe(entry)
      expect(cameras.release('a')).toBeUndefined()
      expect(cameras.find('a')).toBeUndefined()
      expect(store.kept.size).toBe(0)
    })
  })
})
