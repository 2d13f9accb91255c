import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type VideoFrame, VideoFrames, type VideoOptions } from '../../src/sources/video-frames.js'
import { childrenOf } from '../support/processes.js'
import { tempDir } from '../support/temp-dir.js'
import { ffmpegRun, makeClip } from '../support/video-clips.js'

const never = new AbortController().signal

async function framesOf(path: string, options: Partial<VideoOptions> = {}): Promise<VideoFrame[]> {
  const frames: VideoFrame[] = []
  for await (const frame of await VideoFrames.open(path, { sampleFps: 5, signal: never, ...options }))
    frames.push(frame)
  return frames
}

/** An MP4 whose track is shown turned: the matrix of its header is that of a quarter. */
function turnedByQuarter(mp4: Buffer): Buffer {
  const matrix = (...numbers: readonly number[]) => Buffer.from(Int32Array.from(numbers).buffer).swap32()
  const plain = matrix(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
  const at = mp4.indexOf(plain, mp4.indexOf('tkhd'))
  const turned = Buffer.from(mp4)
  turned.set(matrix(0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000), at)
  return turned
}

describe('VideoFrames', () => {
  it('gives the sampled frames of a video, numbered and timed the same each time', async () => {
    const clip = await makeClip(join(tempDir(), 'clip.mp4'), { seconds: 12, widthPx: 160, heightPx: 90 })
    const frames = await framesOf(clip, { sampleFps: 2 })
    expect(frames.map(({ frame }) => frame)).toEqual(
      Array.from({ length: frames.length }, (_, index) => index + 1),
    )
    expect(frames.slice(0, 3).map(({ timeMs }) => timeMs)).toEqual([0, 400, 880])
    expect(frames.length).toBeGreaterThanOrEqual(24)
    expect(frames[0]).toMatchObject({ quality: 'ok', source: { widthPx: 160, heightPx: 90 } })
    expect(frames[0]?.rgbHwc).toHaveLength(160 * 90 * 3)
    const again = await framesOf(clip, { sampleFps: 2 })
    expect(again.map(({ timeMs, rgbHwc }) => [timeMs, Buffer.from(rgbHwc).toString('base64')])).toEqual(
      frames.map(({ timeMs, rgbHwc }) => [timeMs, Buffer.from(rgbHwc).toString('base64')]),
    )
  })

  it('scales to the model, and turns what the file says is turned', async () => {
    const dir = tempDir()
    const clip = await makeClip(join(dir, 'clip.mp4'), { seconds: 1, widthPx: 320, heightPx: 180 })
    const turned = join(dir, 'turned.mp4')
    writeFileSync(turned, turnedByQuarter(readFileSync(clip)))
    const within = { widthPx: 64, heightPx: 64 }
    const video = await VideoFrames.open(turned, { sampleFps: 5, within, signal: never })
    expect(video.size).toEqual({ widthPx: 36, heightPx: 64 })
    expect((await framesOf(turned, { within }))[0]).toMatchObject({ source: { widthPx: 180, heightPx: 320 } })
  })

  it('holds few frames while its reader is slow', async () => {
    const clip = await makeClip(join(tempDir(), 'clip.mp4'), { seconds: 4, widthPx: 640, heightPx: 360 })
    let seen = 0
    for await (const frame of await VideoFrames.open(clip, { sampleFps: 25, signal: never })) {
      await new Promise((resolve) => setTimeout(resolve, seen < 5 ? 20 : 0))
      seen = frame.frame
    }
    expect(seen).toBe(100)
  })

  it('ends without a word when it is told to, and when its reader leaves', async () => {
    const clip = await makeClip(join(tempDir(), 'clip.mp4'), { seconds: 20 })
    const stop = new AbortController()
    let seen = 0
    for await (const _ of await VideoFrames.open(clip, { sampleFps: 25, signal: stop.signal }))
      if ((seen += 1) === 3) stop.abort()
    expect(seen).toBe(3)
    for await (const { frame } of await VideoFrames.open(clip, { sampleFps: 25, signal: never }))
      if (frame === 2) break
  })

  it('takes a decoder that was killed for no end of the video', async () => {
    const clip = await makeClip(join(tempDir(), 'clip.mp4'), { seconds: 20, widthPx: 640, heightPx: 360 })
    const read = async () => {
      for await (const { frame } of await VideoFrames.open(clip, { sampleFps: 25, signal: never }))
        if (frame === 2) for (const { pid } of childrenOf(process.pid, 'ffmpeg')) process.kill(pid, 'SIGKILL')
    }
    await expect(read()).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining('was ended') as string,
    })
  })

  it('says why a file is no video, after the frames that it had', async () => {
    const dir = tempDir()
    const torn = join(dir, 'torn.mp4')
    writeFileSync(torn, 'no video at all')
    await expect(framesOf(torn)).rejects.toMatchObject({ code: 'GANTRY_SOURCE_FAILED', retryable: false })
    await expect(framesOf(join(dir, 'absent.mp4'))).rejects.toThrow(/No such file/)
    const audio = join(dir, 'audio.mkv')
    await ffmpegRun('-f', 'lavfi', '-i', 'sine=d=1', audio)
    await expect(framesOf(audio)).rejects.toThrow(/no video/)
  })
})
