import { chmodSync } from 'node:fs'
import type * as Fs from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { otherUserWorks, thrownForOther } from '../support/other-user.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

/** What the system says of every path while it is set; it is not the same for root. */
const refusal = vi.hoisted(() => ({ code: '' }))
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof Fs>()
  const access: typeof fs.access = (path, mode) =>
    refusal.code === ''
      ? fs.access(path, mode)
      : Promise.reject(Object.assign(new Error(refusal.code), { code: refusal.code, path: String(path) }))
  return { ...fs, access }
})

describe('R23: a path that cannot be read', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>

  beforeAll(async () => {
    folder = await tempFolder()
    chmodSync(folder.path, 0o755)
    await makeClip(folder.file('clip.mp4'), { seconds: 1 })
    await makeClip(folder.file('locked.mp4'), { seconds: 1 })
    chmodSync(folder.file('locked.mp4'), 0)
  })
  beforeEach(() => {
    refusal.code = ''
  })
  afterAll(async () => {
    await folder.remove()
  })

  it.each([
    ['EACCES', 'clip.mp4', /^this user has no permission for it: .*clip\.mp4$/],
    ['EACCES', '.', /^this user has no permission for it: /],
    ['EMFILE', 'clip.mp4', /^no file descriptor is left/],
    ['EIO', 'clip.mp4', /^the disk or network share gave an error: .*clip\.mp4$/],
    ['ESTALE', 'clip.mp4', /^its network share was replaced or taken away: .*clip\.mp4$/],
  ])('by %s (%s) is told, and the camera comes when it can be', async (code, url, reason) => {
    refusal.code = code
    const watched = await WatchedSource.start({ url }, { mediaRoot: folder.path })
    onTestFinished(() => watched.source.stop())
    expect((await watched.untilState('backoff')).reason).toMatch(reason)
    refusal.code = ''
    await watched.untilState('live')
  })

  it('by an error that has no words of ours is looked at again', async () => {
    refusal.code = 'ENOTCONN'
    const watched = await WatchedSource.start({ url: 'clip.mp4' }, { mediaRoot: folder.path })
    onTestFinished(() => watched.source.stop())
    expect((await watched.untilState('backoff')).reason).toBe('ENOTCONN')
  })

  it.skipIf(!otherUserWorks)('is not called missing', () => {
    const thrownFor = (name: string) =>
      thrownForOther(
        'sources/camera-url.js',
        `validateCameraUrl('${name}', ${JSON.stringify({ mediaRoot: folder.path })})`,
      )
    expect(thrownFor('locked.mp4')).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringMatching(/this user has no permission for it: .*locked\.mp4/) as string,
    })
    expect(thrownFor('gone.mp4')).toMatchObject({
      code: 'GANTRY_CAMERA_URL',
      message: expect.stringMatching(/does not exist/) as string,
    })
  })
})
