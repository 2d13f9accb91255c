import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { childOf } from '../support/processes.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const password = 'c4nary@p:w/ü'
const encoded = encodeURIComponent(password)
const credentials = { user: 'admin', password, scheme: 'digest' } as const

describe('the password of a camera', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'))
    await server.start()
    await server.addStream('/good', clip, { credentials })
    await server.addStream('/busy', clip, { credentials, maxSessions: 0 })
    await server.addStream('/udp', clip, { credentials, transports: ['udp'] })
    const noise = (nal: Buffer) => nal.map((byte, at) => (at > 20 && at % 7 === 0 ? byte ^ 0x5a : byte))
    await server.addStream('/damaged', clip, {
      credentials,
      tamper: (unit, n) => (n % 5 === 3 ? unit.nals.map((nal) => Buffer.from(noise(nal))) : unit.nals),
    })
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  const untilGivenUp = (camera: WatchedSource) => camera.untilState('backoff')
  const cases: [
    string,
    () => string,
    Record<string, unknown>,
    (camera: WatchedSource) => Promise<unknown>,
  ][] = [
    ['when all is well', at('/good'), {}, (camera) => camera.untilFrames(2)],
    ['when it is wrong', at('/good', `admin:${encoded}-wrong`), {}, untilGivenUp],
    ['when the stream is missing', at('/missing'), {}, untilGivenUp],
    ['when the camera is busy', at('/busy'), {}, untilGivenUp],
    ['when the transport is refused', at('/udp'), {}, untilGivenUp],
    ['when nobody listens', () => `rtsp://admin:${encoded}@127.0.0.1:1/s`, {}, untilGivenUp],
    ['when the host is unknown', () => `rtsp://admin:${encoded}@camera.invalid/s`, {}, untilGivenUp],
    ['when HTTP is refused', () => `http://admin:${encoded}@127.0.0.1:1/s.m3u8`, {}, untilGivenUp],
    ['when hardware is missing', at('/good'), { hwaccel: 'cuda' }, (camera) => camera.untilFrames(1)],
    [
      'when pictures are damaged',
      at('/damaged'),
      {},
      (camera) => camera.until('damage', () => camera.warnings.length > 5),
    ],
    [
      'when the decoder is killed',
      at('/good'),
      {},
      async (camera) => {
        await camera.untilFrames(1)
        process.kill(childOf(process.pid, 'ffmpeg').pid, 'SIGKILL')
        await untilGivenUp(camera)
      },
    ],
  ]

  it.each(cases)('S4: is told to nobody %s', async (_, url, settings, happens) => {
    watched = await WatchedSource.start({ url: url(), ...settings })
    const camera = watched
    await happens(camera)
    await camera.source.stop()
    const told = JSON.stringify([camera.statuses, camera.warnings, camera.logLines, camera.frames])
    for (const form of [password, encoded, 'c4nary', 'p:w', encodeURIComponent('p:w')])
      expect(told).not.toContain(form)
  })

  function at(path: string, login = `admin:${encoded}`): () => string {
    return () => server.url(path, login)
  }
})
