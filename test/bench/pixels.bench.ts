/**
 * What it costs to make packed RGB of a decoded picture, and how far that is from accurate rounding. `npx tsx test/bench/pixels.bench.ts [rounds]`
 *
 * The filters of decoders, the same in one step of swscale, and accurate rounding, in turn, on pictures of 1280 x 720 in 4:2:0 that lie
 * in memory. `cpuMs` is CPU beyond reading a picture, medians; `apart` the mean difference to accurate rounding, of 255.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { letterboxFilters } from '../../src/sources/geometry.js'
import { quantile, report } from './bench.js'

const run = promisify(execFile)
const rounds = Number(process.argv[2] ?? 9)
const clip = fileURLToPath(new URL('../../pipelines/demo/clips/press-line.mp4', import.meta.url))
const repeats = 5
const compared = 20

const folder = await mkdtemp('/dev/shm/gantry-bench-')
try {
  const raw = join(folder, 'pictures.yuv')
  const pictures = ['-frames:v', '60', '-pix_fmt', 'yuv420p', '-f', 'rawvideo', raw]
  await run('ffmpeg', ['-v', 'error', '-i', clip, ...pictures])
  const frames = ((await stat(raw)).size / (1280 * 720 * 1.5)) * repeats
  const input = ['-f', 'rawvideo', '-pix_fmt', 'yuv420p', '-s', '1280x720', '-i', raw]

  const cpuMs = async (filters: string) => {
    const args = [
      '-benchmark',
      '-threads',
      '1',
      '-stream_loop',
      String(repeats - 1),
      ...input,
      '-vf',
      filters,
    ]
    const { stderr } = await run('ffmpeg', [...args, '-threads', '1', '-f', 'null', '-'])
    const [, user, system] = /utime=([\d.]+)s stime=([\d.]+)s/.exec(stderr) ?? []
    return ((Number(user) + Number(system)) * 1e3) / frames
  }
  const rgbOf = async (filters: string) => {
    const args = ['-v', 'error', ...input, '-vf', filters, '-frames:v', String(compared)]
    const out = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1']
    return (await run('ffmpeg', [...args, ...out], { encoding: 'buffer', maxBuffer: 1 << 28 })).stdout
  }

  for (const [widthPx, heightPx] of [
    [800, 450],
    [416, 234],
  ] as const) {
    const scale = `scale=${widthPx}:${heightPx}:flags=bicubic`
    const ways = {
      decoders: letterboxFilters({}, { input: { widthPx, heightPx }, align: 'center' }).join(','),
      oneStep: `${scale},format=rgb24`,
      accurate: `${scale}+accurate_rnd+full_chroma_int+full_chroma_inp,format=rgb24`,
    }
    const accurate = await rgbOf(ways.accurate)
    const taken = Object.keys(ways).map((name) => ({ name, ms: [] as number[] }))
    for (let round = 0; round < rounds; round += 1) {
      const reading = await cpuMs('null')
      for (const { name, ms } of taken) ms.push((await cpuMs(ways[name as keyof typeof ways])) - reading)
    }
    for (const { name, ms } of taken) {
      const rgb = await rgbOf(ways[name as keyof typeof ways])
      const apart = rgb.reduce((sum, value, at) => sum + Math.abs(value - accurate[at]!), 0) / rgb.length
      report(`pixels ${widthPx}x${heightPx}, ${name}`, 'ms', { cpuMs: quantile(ms, 0.5), apart, rounds })
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
