import { chmodSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

/** Stands in for ffmpeg: frames as fast as they are taken, and a thousand complaints with each. */
const flood = `#!${process.execPath}
import { writeSync } from 'node:fs'
const frame = Buffer.alloc(160 * 160 * 3)
const complaints = '[h264 @ 0x1] [error] error while decoding MB 11 0, bytestream -5\\n'.repeat(1000)
const send = (fd, bytes) => {
  for (let at = 0; at < bytes.length; )
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
}
send(2, Buffer.from("[info] Input #0, mov,mp4, from 'clip.mp4':\\n"))
send(2, Buffer.from(\`[info] -\${160 * 65536 + 160}.000000\\n\`))
for (let n = 0; ; n += 1) {
  send(2, Buffer.from(\`\${complaints}[warning] \${(n / 10).toFixed(6)}\\n\`))
  send(1, frame)
}
`

let folder: Awaited<ReturnType<typeof tempFolder>>
const path = process.env['PATH']

beforeEach(async () => {
  folder = await tempFolder()
  await makeClip(folder.file('clip.mp4'), { seconds: 1 })
  writeFileSync(folder.file('ffmpeg'), flood)
  chmodSync(folder.file('ffmpeg'), 0o755)
  process.env['PATH'] = `${folder.path}:${path}`
})
afterEach(async () => {
  process.env['PATH'] = path
  await folder.remove()
})

it('R9: a decoder that complains ten thousand times a second and more neither stalls nor fills the log', async () => {
  const frames = 1_000
  const camera = await WatchedSource.start({ url: 'clip.mp4' }, { mediaRoot: folder.path })
  await camera.untilFrames(frames, 20_000)
  await camera.source.stop()
  const [first, last] = [camera.frames[0], camera.frames.at(-1)]
  const seconds = ((last?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)) / 1_000
  expect((1_000 * frames) / seconds).toBeGreaterThan(10_000)
  // What the owner logs of it: warnings, and lines of the source itself.
  const logged = camera.logLines.length + camera.warnings.length
  expect(logged).toBeLessThanOrEqual(10 * Math.ceil(seconds + 1))
  const suppressed = camera.warnings.filter(({ kind }) => kind === 'log_suppressed')
  const lastTold = suppressed.at(-1)?.atMs ?? 0
  const untilThen = camera.frames.filter(({ arrivedMs }) => arrivedMs < lastTold).length
  const told = suppressed.reduce((sum, { detail }) => sum + Number.parseInt(detail), 0)
  expect(told + logged).toBeGreaterThanOrEqual(1_000 * (untilThen - 1))
  expect(camera.frames.every((frame) => frame.quality === 'suspect')).toBe(true)
  expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
  expect(camera.statuses.some(({ state }) => state === 'stalled')).toBe(false)
})
