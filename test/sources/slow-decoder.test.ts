import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { childOf } from '../support/processes.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

describe('a decoder on a machine that has no time for it', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>

  beforeAll(async () => {
    folder = await tempFolder()
    const source = 'nullsrc=s=1280x720:r=25:d=4,noise=alls=40:allf=t'
    const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '24', '-g', '25', '-pix_fmt', 'yuv420p']
    const clip = await makeClip(folder.file('heavy.mp4'), { source, codec })
    await server.start()
    await server.addStream('/heavy', clip)
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  it('R62: leaves out pictures for the newest, without damage, and says so', async () => {
    const camera = await WatchedSource.start({ url: server.url('/heavy'), sampleFps: 5 })
    let goes: NodeJS.Timeout | undefined
    try {
      await camera.untilFrames(5)
      const { pid } = childOf(process.pid, 'ffmpeg')
      let on = true
      // It runs for a fifth of the time.
      goes = setInterval(() => {
        on = !on
        process.kill(pid, on ? 'SIGCONT' : 'SIGSTOP')
        if (on) setTimeout(() => goes !== undefined && process.kill(pid, 'SIGSTOP'), 20)
      }, 50)
      const behind = () => camera.warnings.filter(({ kind }) => kind === 'decoder_behind')
      await camera.until('pictures to be left out', () => behind().length > 0, 60_000)
      clearInterval(goes)
      goes = undefined
      process.kill(pid, 'SIGCONT')
      expect(behind()[0]?.detail).toMatch(/^the decoder was \d+\.\d s behind: \d+ pictures left out$/)
      const had = camera.frames.length
      await camera.untilFrames(had + 15, 20_000)
      expect(camera.frames.filter(({ quality }) => quality !== 'ok')).toEqual([])
      expect(new Set(camera.warnings.map(({ kind }) => kind))).toEqual(new Set(['decoder_behind']))
      expect(camera.logLines.filter((line) => /CSeq|missed/.test(line))).toEqual([])
    } finally {
      clearInterval(goes)
      await camera.source.stop()
    }
  }, 120_000)
})
