import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cameraSchema } from '../../src/config/camera.js'
import { CameraStore, CameraStoreError } from '../../src/cameras/camera-store.js'

const camera = (id: string) => cameraSchema.parse({ id, url: 'rtsp://user:secret@127.0.0.1/live' })

describe('CameraStore', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gantry-store-'))
  })
  afterEach(async () => {
    await rm(dir, { recursive: true, force: true })
  })

  it('is empty where nothing was saved', async () => {
    expect(await new CameraStore(join(dir, 'new')).load()).toEqual([])
  })

  it('gives back what was saved last, however many saves ran at once', async () => {
    const store = new CameraStore(dir)
    await Promise.all([
      store.save([camera('a')]),
      store.save([camera('a'), camera('b')]),
      store.save([camera('c')]),
    ])
    expect(await new CameraStore(dir).load()).toEqual([camera('c')])
    expect(await readdir(dir)).toEqual(['cameras.json'])
  })

  it('R66: reads a file that an editor put a byte order mark into, and refuses UTF-16 by name', async () => {
    await new CameraStore(dir).save([camera('a')])
    const path = join(dir, 'cameras.json')
    const text = `\uFEFF${await readFile(path, 'utf8')}`
    await writeFile(path, text)
    expect(await new CameraStore(dir).load()).toEqual([camera('a')])
    await writeFile(path, Buffer.from(text, 'utf16le'))
    await expect(new CameraStore(dir).load()).rejects.toThrow(/it is UTF-16/)
  })

  it('keeps the file from other users, because it holds credentials', async () => {
    await new CameraStore(dir).save([camera('a')])
    expect((await stat(join(dir, 'cameras.json'))).mode & 0o777).toBe(0o600)
  })

  it.each(['{', '{"version":2,"cameras":[]}', '{"version":1,"cameras":[{"id":"a"}]}'])(
    'names the file when it holds %s',
    async (text) => {
      await writeFile(join(dir, 'cameras.json'), text)
      const loading = new CameraStore(dir).load()
      await expect(loading).rejects.toThrow(CameraStoreError)
      await expect(loading).rejects.toThrow(/cameras\.json/)
    },
  )
})
