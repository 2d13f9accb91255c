import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadClip } from '../../../src/tools/rtsp-server/clip.js'
import { tempDir } from '../../support/temp-dir.js'
import { ffmpegRun, makeClip } from '../../support/video-clips.js'

it.each([
  ['as it is', {}],
  ['encoded first, where it is no H.264', { codec: ['-c:v', 'mpeg4'] }],
])('a clip is served %s', async (_, spec) => {
  const clip = await loadClip(await makeClip(join(tempDir(), 'clip.mp4'), { ...spec, fps: 10, seconds: 2 }))
  expect(clip.units).toHaveLength(20)
  expect(clip.units[0]).toMatchObject({ dtsMs: 0, key: true })
  expect(Math.round(clip.durationMs)).toBe(2_000)
})

it('a file that cannot be served says why', async () => {
  const dir = tempDir()
  const [text, sound] = [join(dir, 'notes.txt'), join(dir, 'sound.wav')]
  writeFileSync(text, 'no video\n')
  await ffmpegRun('-f', 'lavfi', '-i', 'sine=duration=0.2', sound)
  await expect(loadClip(text)).rejects.toThrow(`clip ${text} cannot be served: Invalid data`)
  await expect(loadClip(sound)).rejects.toThrow(`clip ${sound} cannot be served: it holds no video`)
  await expect(loadClip(join(dir, 'none.mp4'))).rejects.toThrow('No such file')
})
