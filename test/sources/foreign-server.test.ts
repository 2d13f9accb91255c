import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const probe = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
const isInstalled = spawnSync('/usr/bin/python3', ['-c', probe], { stdio: 'ignore' }).status === 0
const lacking =
  'SKIPPED: cameras of the GStreamer RTSP server; install python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-good gstreamer1.0-plugins-bad'
if (!isInstalled && process.env['CI'] === 'true') throw new Error(lacking)
if (!isInstalled) process.stderr.write(`\n${lacking}\n`)

describe.skipIf(!isInstalled)('a camera of the GStreamer RTSP server', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let server: ChildProcess
  let url: string
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'), { seconds: 20, bFrames: 0 })
    const script = fileURLToPath(new URL('../support/gst-rtsp-server.py', import.meta.url))
    server = spawn('/usr/bin/python3', [script, clip], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = (await once(server.stdout ?? server, 'data')) as [Buffer]
    url = `rtsp://127.0.0.1:${Number(port.toString())}/cam`
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    server.kill('SIGKILL')
    await folder.remove()
  })

  it.each(['tcp', 'udp'])('delivers frames over %s', async (transport) => {
    watched = await WatchedSource.start({ url, transport })
    const frames = await watched.untilFrames(10, 15_000)
    expect(frames[0]?.source).toEqual({ widthPx: 320, heightPx: 180 })
    const spanMs = (frames[9]?.ptsMs ?? 0) - (frames[0]?.ptsMs ?? 0)
    expect(Math.abs(spanMs - 1_800)).toBeLessThan(150)
    expect(frames.filter((frame) => frame.quality === 'suspect')).toEqual([])
  })

  it('is missed at once when the server is killed', async () => {
    watched = await WatchedSource.start({ url })
    const camera = watched
    await camera.untilFrames(2, 15_000)
    server.kill('SIGKILL')
    expect((await camera.untilState('backoff')).reason).not.toBe('')
    expect(camera.frames.map((frame) => frame.seq)).toEqual(camera.frames.map((_, index) => index + 1))
  })
})
