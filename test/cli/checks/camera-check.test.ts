import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCameras } from '../../../src/cli/checks/camera-check.js'
import { startDemoCameras } from '../../../src/cli/demo-cameras.js'
import { pipelineSchema } from '../../../src/config/pipeline.js'
import { startHttpServer } from '../../support/http-server.js'
import { plainPicture } from '../../support/still-pictures.js'
import { codedStream, PacedRtspServer } from '../../support/paced-rtsp.js'
import { tempDir } from '../../support/temp-dir.js'
import { ffmpegRun, tempFolder } from '../../support/video-clips.js'

const clips = join(import.meta.dirname, '../../../pipelines/demo/clips')
let demo: Awaited<ReturnType<typeof startDemoCameras>>
beforeAll(async () => {
  demo = await startDemoCameras(clips, 2, new AbortController().signal)
})
afterAll(() => demo.server.stop())

function pipeline(cameras: unknown) {
  return pipelineSchema.parse({ apiVersion: 'gantry/v1', mediaRoot: clips, cameras })
}

describe('the cameras of gantry check', () => {
  it('are opened with --probe until their first picture', async () => {
    const { findings, shapes } = await checkCameras(pipeline(demo.cameras), { probe: true })
    expect(findings).toHaveLength(2)
    for (const finding of findings) {
      expect(finding.detail).toMatch(/^\d+x\d+, first picture after \d+ ms$/)
      expect(finding.state).toBe('ok')
    }
    const whole = { widthPx: 1280, heightPx: 720 }
    expect(shapes).toEqual({ pictures: [whole, whole], cameras: 2 })
  })

  it('with a sub-stream are opened by both their URLs', async () => {
    const [dock, gate] = demo.cameras
    const both = [{ id: 'both', url: dock!.url, analyseUrl: gate!.url }]
    const {
      findings: [finding],
    } = await checkCameras(pipeline(both), { probe: true })
    expect(finding?.detail).toMatch(/^1280x720, first picture after \d+ ms; main stream 1280x720$/)
    const wrong = { id: 'b', analyseUrl: gate!.url, url: 'rtsp://u:canary@127.0.0.1:1/x' }
    const {
      findings: [failed],
    } = await checkCameras(pipeline([wrong]), { probe: true })
    expect(failed).toMatchObject({
      state: 'failed',
      detail: expect.stringMatching(/main stream.*refused/) as string,
    })
    expect(JSON.stringify(failed)).not.toContain('canary')
    const {
      findings: [other],
    } = await checkCameras(pipeline([{ ...wrong, url: dock!.url, analyseUrl: wrong.url }]), { probe: true })
    expect(other).toMatchObject({
      state: 'failed',
      detail: expect.stringMatching(/^analyseUrl: .*refused/) as string,
    })
    expect(JSON.stringify(other)).not.toContain('canary')
    const refused = pipeline([{ ...wrong, url: dock!.url, analyseUrl: 'gopher://h' }])
    const {
      findings: [unseen],
    } = await checkCameras(refused, { probe: false })
    expect(unseen?.state).toBe('failed')
  })

  it('R64: whose URL gives one picture for each request are said to be polled', async () => {
    const picture = await plainPicture('red')
    const server = await startHttpServer((_request, response) => response.end(picture))
    try {
      const cameras = [{ id: 'still', url: `${server.base}/snap`, sampleFps: 2 }]
      const {
        findings: [finding],
      } = await checkCameras(pipeline(cameras), { probe: true })
      expect(finding).toMatchObject({
        state: 'ok',
        detail: expect.stringMatching(
          /^64x48, snapshot, polled at 2 fps, first picture after \d+ ms$/,
        ) as string,
      })
    } finally {
      await server.close()
    }
  })

  it('R61: that send a picture more rarely than they are looked at are waited for, and it is said', async () => {
    const server = await PacedRtspServer.start(await codedStream(join(tempDir(), 'slow.264'), 'h264'), 11_500)
    try {
      const said: string[] = []
      server.burst = 0
      const slow = pipeline([{ id: 'slow', url: server.url }])
      const {
        findings: [finding],
      } = await checkCameras(slow, { probe: true, say: (line) => said.push(line) })
      expect(finding).toMatchObject({ subject: 'camera slow', state: 'ok' })
      expect(finding?.detail).toMatch(
        /^320x176, first picture after 1\d{4} ms: it sends fewer than one in 10 s$/,
      )
      expect(said).toEqual(['camera slow answers, and has sent no picture in 10 s: waiting up to 150 s'])
    } finally {
      await server.stop()
    }
  }, 60_000)

  it('R59: that are files are said to be what they are', async () => {
    const folder = await tempFolder()
    const [small, large] = ['160x120', '320x240'].map((size) => [
      ...['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=10:d=2`],
    ]) as [string[], string[]]
    const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']
    try {
      await ffmpegRun(...small, ...large, '-map', '0', '-map', '1', ...h264, folder.file('angles.mp4'))
      await ffmpegRun('-f', 'lavfi', '-i', 'sine=d=1', folder.file('sound.mp4'))
      await ffmpegRun(...small, ...h264, folder.file('cut.mp4'))
      truncateSync(folder.file('cut.mp4'), statSync(folder.file('cut.mp4')).size / 2)
      await ffmpegRun(...small, ...h264, folder.file('zeros.ts'))
      const bytes = readFileSync(folder.file('zeros.ts'))
      // The payload of all packets but the tables at the begin of each second.
      for (let at = 188 * 3; at < bytes.length; at += 188) bytes.fill(0, at + 60, at + 188)
      writeFileSync(folder.file('zeros.ts'), bytes)
      const looked = async (camera: object) => {
        const config = pipelineSchema.parse({
          ...{ apiVersion: 'gantry/v1', mediaRoot: folder.path },
          cameras: [{ id: 'file', ...camera }],
        })
        const [finding] = (await checkCameras(config, { probe: true })).findings
        return `${finding?.state}: ${finding?.detail.replace(/\d+ ms/, 'N ms')}`
      }
      expect(await looked({ url: 'angles.mp4' })).toBe(
        'ok: 160x120, video 1 of 2: h264, 160 x 120 (videoTrack), first picture after N ms',
      )
      expect(await looked({ url: 'angles.mp4', videoTrack: 2 })).toBe(
        'ok: 320x240, video 2 of 2: h264, 320 x 240 (videoTrack), first picture after N ms',
      )
      expect(await looked({ url: 'angles.mp4', videoTrack: 3 })).toBe(
        'failed: videoTrack is 3, and there are 2 videos',
      )
      expect(await looked({ url: 'sound.mp4' })).toBe('failed: there is no video in the file')
      expect(await looked({ url: 'cut.mp4' })).toBe('failed: the file cannot be read as video')
      expect(await looked({ url: 'zeros.ts' })).toMatch(
        /^failed: (the file cannot be read as video|no picture of)/,
      )
    } finally {
      await folder.remove()
    }
  }, 90_000)

  it('that do not answer fail with the reason', async () => {
    const gone = pipeline([{ id: 'gone', url: 'rtsp://u:canary@127.0.0.1:1/x' }])
    const {
      findings: [finding],
      shapes,
    } = await checkCameras(gone, { probe: true })
    expect(shapes).toEqual({ pictures: [], cameras: 1 })
    expect(finding).toMatchObject({ subject: 'camera gone', state: 'failed' })
    expect(finding?.detail).toMatch(/refused/i)
    expect(JSON.stringify(finding)).not.toContain('canary')
  })

  it('whose URL would not be opened fail without being asked', async () => {
    const cameras = [
      { id: 'scheme', url: 'gopher://h/1' },
      { id: 'outside', url: '/etc/passwd' },
      { id: 'absent', url: 'none.mp4' },
    ]
    const { findings } = await checkCameras(pipeline(cameras), { probe: false })
    expect(findings.map(({ state }) => state)).toEqual(['failed', 'failed', 'failed'])
    for (const { fix } of findings) expect(fix).toBeTruthy()
  })

  it('that are disabled or push are not probed', async () => {
    const cameras = [
      { id: 'off', url: 'rtsp://127.0.0.1:1/x', enabled: false },
      { id: 'pushed', url: 'push:' },
    ]
    const { findings } = await checkCameras(pipeline(cameras), { probe: true })
    expect(findings.map(({ state }) => state)).toEqual(['skipped', 'ok'])
  })
})
