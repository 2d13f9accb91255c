import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { FfmpegFilters, filtersIn } from '../../src/sources/ffmpeg-filters.js'
import { tempDir } from '../support/temp-dir.js'

function withFfmpeg(says: string) {
  const dir = tempDir()
  writeFileSync(join(dir, 'ffmpeg'), `#!/bin/sh\necho x >> ${dir}/starts\n${says}\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${dir}:${process.env['PATH'] ?? ''}`)
  onTestFinished(() => void vi.unstubAllEnvs())
  return () => readFileSync(join(dir, 'starts'), 'utf8').split('\n').length - 1
}

describe('the filters of this ffmpeg', () => {
  it('are those that the real one lists', async () => {
    const filters = new FfmpegFilters()
    expect(
      await Promise.all(['scale', 'select', 'hwdownload', 'V'].map((name) => filters.has(name))),
    ).toEqual([true, true, true, false])
  })

  it('are asked for once, and are none where they cannot be', async () => {
    const starts = withFfmpeg('echo "no such option" >&2; exit 1')
    const filters = new FfmpegFilters()
    expect(await Promise.all([filters.has('scale_cuda'), filters.has('scale')])).toEqual([false, false])
    expect(await filters.has('scale')).toBe(false)
    expect(starts()).toBe(1)
  })

  it('are read from the lines of every version', () => {
    const listing = `Filters:
  T.. = Timeline support
  ..C = Command support
  | = Source or sink filter
 ..C blend_vulkan      VV->V      Blend two video frames in Vulkan
 ... scale_cuda        V->V       GPU accelerated video resizer
 .S. scale             V->V       Scale the input video size and/or convert the image format.
 TS hue               V->V       Adjust the hue and saturation of the input video.
 ... nullsrc           |->V       Null video source
`
    expect(filtersIn(listing)).toEqual(['blend_vulkan', 'scale_cuda', 'scale', 'hue', 'nullsrc'])
  })
})
