import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseDecoderLine } from '../../src/sources/decoder-log.js'
import { selectExpression } from '../../src/sources/sampling.js'

const run = promisify(execFile)

/** Times, in seconds, of the pictures that pass, out of a stream whose pictures have the times `setpts` gives them. */
async function passing(
  fps: number,
  sourceFps: number,
  seconds: number,
  times = 'PTS',
  expression = selectExpression(fps),
): Promise<number[]> {
  const source = `testsrc2=s=64x36:r=${sourceFps}:d=${seconds}`
  const filters = `settb=1/90000,setpts='${times}',select='${expression}'`
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
  const { stderr } = await run('ffmpeg', ['-hide_banner', '-loglevel', 'repeat+level+info', ...args], {
    maxBuffer: 1 << 26,
  })
  return stderr
    .split('\n')
    .map(parseDecoderLine)
    .flatMap((line) => (line.kind === 'picture' ? [(line.ptsMs ?? NaN) / 1e3] : []))
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

  it('tells times to the millisecond after five days', async () => {
    expect((await passing(25, 25, 1, 'PTS+432000/TB')).slice(0, 3)).toEqual([432_000, 432_000.04, 432_000.08])
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

  describe('with a phase', () => {
    /** As far as each picture after the alignment is from its phase, as a fraction of the period; negative is early. */
    async function offsets(fps: number, sourceFps: number, phase: number): Promise<number[]> {
      const wall = '(1000000.07+t)'
      const times = await passing(fps, sourceFps, 10, 'PTS', selectExpression(fps, phase, wall))
      expect(times.length).toBeGreaterThanOrEqual(10 * fps - 2)
      expect(times.length).toBeLessThanOrEqual(10 * fps + 1)
      const aligned = times.slice(Math.ceil(3 * fps))
      return aligned.map((time) => (((((1000000.07 + time) * fps - phase + 0.5) % 1) + 1) % 1) - 0.5)
    }

    it.each([
      [5, 25, 0],
      [5, 25, 0.125],
      [5, 25, 0.5],
      [5, 25, 0.9],
      [2, 30, 0.3],
      [10, 60, 0.75],
    ])('passes %d of %d frames per second at %d of the period', async (fps, sourceFps, phase) => {
      const most = Math.max(1 / 8, (0.75 * fps) / sourceFps) + 1e-3
      for (const offset of await offsets(fps, sourceFps, phase))
        expect(Math.abs(offset)).toBeLessThanOrEqual(most)
    })

    it.each([0, 0.3, 0.5, 0.8])(
      'leaves a camera alone that has no other picture to choose: %d',
      async (phase) => {
        const expression = selectExpression(25, phase, '(1000000.07+t)')
        expect(await passing(25, 25, 10, 'PTS', expression)).toHaveLength(250)
      },
    )

    it('loses no more than the moment of the alignment when time jumps', async () => {
      const times = '7200/TB+PTS-gte(N,100)*3600/TB'
      const passed = await passing(5, 25, 20, times, selectExpression(5, 0.5, '(1000000.07+t)'))
      expect(Math.abs(passed.length - 100)).toBeLessThanOrEqual(3)
    })
  })
})
