import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

describe('a file camera', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    await makeClip(folder.file('clip.mp4'), { seconds: 1, bFrames: 2 })
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await folder.remove()
  })

  async function start(
    camera: Readonly<{ url: string } & Record<string, unknown>>,
    options: WatchOptions = {},
  ): Promise<WatchedSource> {
    watched = await WatchedSource.start(camera, { mediaRoot: folder.path, ...options })
    return watched
  }

  it('plays at its own speed and begins anew at the end, stream time going on', async () => {
    const camera = await start({ url: 'clip.mp4' })
    const frames = await camera.untilFrames(12)
    const took = (frames[11]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
    expect(took).toBeGreaterThan(1_800)
    expect(frames[11]?.ptsMs).toBeGreaterThan(1_800)
    expect(camera.statuses.filter((status) => status.state === 'live')).toHaveLength(1)
    expect(camera.warnings).toEqual([])
  })

  it('ends as disabled when it shall not loop', async () => {
    const camera = await start({ url: `file://${folder.file('clip.mp4')}`, loop: false })
    const status = await camera.untilState('disabled')
    expect(status.reason).toBe('the end was reached and loop is off')
    // One second at 5 fps, ends included.
    expect(camera.frames.length).toBe(6)
  })

  it('fails for good when the file does not exist', async () => {
    const camera = await start({ url: 'missing.mp4' })
    expect((await camera.untilState('failed')).reason).toMatch(/does not exist/)
  })

  it('does nothing while it is switched off', async () => {
    const camera = await start({ url: 'clip.mp4', enabled: false })
    expect(camera.source.status).toMatchObject({ state: 'disabled', reason: 'switched off', attempts: 0 })
  })
})
