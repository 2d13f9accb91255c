import { mkdirSync, writeFileSync } from 'node:fs'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { damagedStills, wholeStills } from '../support/damaged-stills.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

describe('a folder camera', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    for (const name of ['mixed', 'empty', 'broken']) mkdirSync(folder.file(name))
    for (const [name, widthPx] of [
      ['10.png', 100],
      ['2.jpg', 20],
      ['1.JPG', 10],
    ] as const) {
      const still = sharp({ create: { width: widthPx, height: 64, channels: 3, background: 'red' } })
      await (name === '10.png' ? still.png() : still.jpeg()).toFile(folder.file(`mixed/${name}`))
    }
    writeFileSync(folder.file('mixed/3.jpg'), 'no picture')
    writeFileSync(folder.file('mixed/notes.txt'), 'no picture either')
    await makeClip(folder.file('mixed/4.mp4'), { seconds: 0.5, widthPx: 64, heightPx: 64 })
    writeFileSync(folder.file('broken/1.jpg'), 'no picture')
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await folder.remove()
  })

  async function start(url: string, camera: Record<string, unknown> = {}): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url, sampleFps: 10, ...camera }, { mediaRoot: folder.path })
    return watched
  }

  it('shows pictures and videos in the order of their names, numbers by value', async () => {
    const camera = await start('mixed', { loop: false })
    expect((await camera.untilState('disabled')).reason).toBe('the end was reached and loop is off')
    const widths = camera.frames.map((frame) => frame.source.widthPx)
    expect(widths.filter((width, index) => width !== widths[index - 1])).toEqual([10, 20, 64, 100])
    expect(widths.filter((width) => width === 64).length).toBeGreaterThanOrEqual(5)
    expect(camera.warnings).toMatchObject([
      { kind: 'decode_error', detail: expect.stringMatching(/^3\.jpg: /) as string },
    ])
  })

  it('shows pictures at the sampling rate and begins anew', async () => {
    const camera = await start('mixed')
    await camera.until(
      'the second round',
      () => camera.frames.filter((frame) => frame.source.widthPx === 10).length > 1,
    )
    const [first, second] = camera.frames
    const gapMs = (second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)
    expect(gapMs).toBeGreaterThan(50)
  })

  it('R60: shows damaged pictures as suspect, and names them', async () => {
    mkdirSync(folder.file('damaged'))
    const named = [...wholeStills, ...damagedStills].map(([name, make]) => ({ name: `${name}.jpg`, make }))
    for (const { name, make } of named) writeFileSync(folder.file(`damaged/${name}`), await make())
    const camera = await start('damaged', { loop: false })
    await camera.untilState('disabled')
    expect(camera.frames.map(({ quality }) => quality).toSorted()).toEqual([
      ...wholeStills.map(() => 'ok'),
      ...damagedStills.map(() => 'suspect'),
    ])
    expect(camera.warnings.map(({ detail }) => detail.split(': ')[0]).toSorted()).toEqual(
      damagedStills.map(([name]) => `${name}.jpg`).toSorted(),
    )
  })

  it.each([
    ['empty', 'failed', 'the folder holds no picture (JPEG, PNG) and no video'],
    ['broken', 'backoff', 'no file of the folder could be read'],
  ] as const)('says what is wrong with a folder that is %s', async (name, state, reason) => {
    const camera = await start(name)
    expect((await camera.untilState(state)).reason).toBe(reason)
  })
})
