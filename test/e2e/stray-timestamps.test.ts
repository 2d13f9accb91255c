import { expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import type { ServedStream } from '../../src/tools/rtsp-server/served-stream.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { makeClip, tempFolder } from '../support/video-clips.js'

/** What is added to the time of the n-th picture, of 25 in a second. */
const strays: Readonly<Record<string, (n: number) => number>> = {
  back: (n) => (n % 10 === 9 ? -900 : 0),
  jitter: (n) => (n % 2 === 0 ? 0 : -120),
  jump: (n) => (n % 50 < 25 ? 0 : 5_000),
}

it('R58: recorders with stray timestamps are counted, and write a line of a kind, not two a second', async () => {
  const folder = await tempFolder()
  const rtsp = new LoopingRtspServer()
  await rtsp.start()
  const clip = await makeClip(folder.file('clip.mp4'), { seconds: 2 })
  for (const [name, shift] of Object.entries(strays)) {
    const stream: ServedStream = await rtsp.addStream(`/${name}`, clip, {
      firstRtpTime: 0,
      tamper: (unit, n) => {
        stream.shiftMs = shift(n)
        return unit.nals
      },
    })
  }
  const cameras = Object.keys(strays).map((id) => ({ id, url: rtsp.url(`/${id}`), sampleFps: 25 }))
  const service = await TestService.start({ pipeline: { cameras } })
  try {
    const jumps = (id: string) =>
      service.metric(new RegExp(`gantry_source_warnings_total\\{camera="${id}",kind="pts_discontinuity"\\}`))
    for (const { id } of cameras) await until(`jumps of ${id}`, async () => (await jumps(id)) >= 8, 40_000)
    const logged = () =>
      service.stderr
        .split('\n')
        .filter((line) => /decoder message|camera source warning/.test(line))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    for (const { id } of cameras) {
      const lines = logged().filter(({ cameraId }) => cameraId === id)
      expect(lines.some(({ kind }) => kind === 'pts_discontinuity')).toBe(true)
      // ffmpeg has nothing to say of them: its output counts in 1/90000 s.
      expect(lines.filter(({ ffmpeg }) => ffmpeg !== undefined)).toEqual([])
      // One of each kind, within the first minute.
      const kinds = lines.map(({ kind }) => kind)
      expect(kinds).toHaveLength(new Set(kinds).size)
    }
    await service.end()
    // What was not told yet is told at the end.
    for (const { id } of cameras)
      expect(
        logged().some(
          ({ cameraId, kind, times }) =>
            cameraId === id && kind === 'pts_discontinuity' && Number(times) >= 7,
        ),
      ).toBe(true)
  } finally {
    await service[Symbol.asyncDispose]()
    await rtsp.stop()
    await folder.remove()
  }
}, 90_000)
