import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { selectExpression } from '../../src/sources/sampling.js'

const run = promisify(execFile)

/** Times, in seconds, of the pictures that pass, out of a stream whose pictures have the times `setpts` gives them. */
async function passing(fps: number, sourceFps: number, seconds: number, times = 'PTS'): Promise<number[]> {
  const source = `testsrc2=s=64x36:r=${sourceFps}:d=${seconds}`
  const filters = `settb=1/90000,setpts='${times}',select='${selectExpression(fps)}',showinfo@picture=checksum=0`
  const args = [
    '-nostats',
    '-f',
    'lavfi',
    '-i',
    source,
    '-vf',
    filters,
    '-fps_mode',
    'passthrough',
    '-f',
    'null',
    '-',
  ]
  const { stderr } = await run('ffmpeg', ['-hide_banner', ...args], { maxBuffer: 1 << 26 })
  return [...stderr.matchAll(/pts_time:(\S+)/g)].map((match) => Number(match[1]))
}

describe('selectExpression', () => {
  it.each([
    [5, 25, 20],
    [2, 30, 20],
    [8, 30, 20],
    [12.5, 25, 20],
    [0.5, 10, 20],
  ])('passes %d of %d frames per second, evenly', async (fps, sourceFps, seconds) => {
    const times = await passing(fps, sourceFps, seconds)
    expect(Math.abs(times.length - fps * seconds)).toBeLessThanOrEqual(1)
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1 / fps + 1 / sourceFps + 1e-3)
  })

  it.each([
    [25, 25],
    [30, 15],
  ])('passes every frame when %d are asked of %d', async (fps, sourceFps) => {
    expect(await passing(fps, sourceFps, 10)).toHaveLength(sourceFps * 10)
  })

  it('loses no frame of a camera that jitters at the sampling rate itself', async () => {
    // Every other picture comes 15 ms late.
    expect(await passing(5, 5, 20, 'PTS+mod(N,2)*0.015/TB')).toHaveLength(100)
  })

  it.each([
    ['back by an hour', '7200/TB+PTS-gte(N,100)*3600/TB'],
    ['ahead by an hour', 'PTS+gte(N,100)*3600/TB'],
    ['back by a second', '100/TB+PTS-gte(N,100)*1/TB'],
  ])('goes on at the same rate when time jumps %s', async (_, times) => {
    const passed = await passing(5, 25, 20, times)
    expect(Math.abs(passed.length - 100)).toBeLessThanOrEqual(2)
  })
})
