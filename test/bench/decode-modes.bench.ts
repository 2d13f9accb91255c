/**
 * What it costs to decode a picture of a stream, by what is left out, and what that does to the boxes of the detector.
 *
 *     npm run build:server && npx tsx test/bench/decode-modes.bench.ts [rounds] [clip...]
 *
 * Ways, in turn: `full`, `fast` and `keyframes` as cameras have them; `nokey` and `all` leave the loop filter out of more pictures. Streams: the
 * clip as it is, and encoded anew with a key frame every two and every ten seconds, without and with B-frames. `cpuMs` is CPU a picture of the stream, on
 * one thread, medians. Boxes of each way, five pictures a second, are held against those of `full` (`lost` of these have no partner, `other`
 * are new) and, where a clip of the demo is as it is, against the truth (`right` of `labelled`).
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { framesPerSecond, observed } from '../../sim/index.js'
import { leftOut } from '../../src/sources/ffmpeg-command.js'
import type { Detection } from '../../src/vision/detection.js'
import { type Tally, countAgainstTruth } from '../support/against-truth.js'
import { quantile, report } from './bench.js'
import { alone, ClipDetector, demoClip, demoSites } from './clip-detector.js'

const run = promisify(execFile)
const rounds = Number(process.argv[2] ?? 5)
const given = process.argv.slice(3)
const clips = given.length > 0 ? given : demoSites.map(demoClip)
const fps = 5
const ways: Readonly<Record<string, readonly string[]>> = {
  ...leftOut,
  nokey: ['-skip_loop_filter', 'nokey'],
  all: ['-skip_loop_filter', 'all'],
}
const streams: Readonly<Record<string, Readonly<{ gopSeconds: number; bFrames: number }> | undefined>> = {
  'as it is': undefined,
  'key frame every 2 s': { gopSeconds: 2, bFrames: 0 },
  'the same with B-frames': { gopSeconds: 2, bFrames: 2 },
  'key frame every 10 s': { gopSeconds: 10, bFrames: 0 },
}

async function factsOf(
  clip: string,
): Promise<{ widthPx: number; heightPx: number; pictures: number; fps: number }> {
  const wanted = 'stream=width,height,nb_read_packets,avg_frame_rate'
  const args = [
    '-v',
    'error',
    '-select_streams',
    'v:0',
    '-count_packets',
    '-show_entries',
    wanted,
    '-of',
    'json',
  ]
  const { stdout } = await run('ffprobe', [...args, clip])
  const [stream] = (JSON.parse(stdout) as { streams: Record<string, string>[] }).streams
  const [over = 25, under = 1] = (stream?.['avg_frame_rate'] ?? '').split('/').map(Number)
  return {
    widthPx: Number(stream?.['width']),
    heightPx: Number(stream?.['height']),
    pictures: Number(stream?.['nb_read_packets']),
    fps: over / under,
  }
}

async function cpuMs(clip: string, pictures: number, options: readonly string[]): Promise<number> {
  const input = ['-benchmark', '-threads', '1', ...options, '-i', clip]
  const { stderr } = await run('ffmpeg', [...input, '-an', '-fps_mode', 'passthrough', '-f', 'null', '-'])
  const [, user, system] = /utime=([\d.]+)s stime=([\d.]+)s/.exec(stderr) ?? []
  return ((Number(user) + Number(system)) * 1e3) / pictures
}

const folder = await mkdtemp('/dev/shm/gantry-bench-')
const detector = await ClipDetector.open()
try {
  for (const [stream, encoding] of Object.entries(streams)) {
    const sums = Object.keys(ways).map((way) => ({
      ...{ way, cpu: [] as number[], full: 0, lost: 0, other: 0 },
      tallies: new Map<string, Tally>(),
    }))
    for (const clip of clips) {
      const facts = await factsOf(clip)
      const path = encoding === undefined ? clip : join(folder, basename(clip))
      if (encoding !== undefined) {
        const gop = String(Math.round(encoding.gopSeconds * facts.fps))
        const x264 = ['-c:v', 'libx264', '-preset', 'medium', '-crf', '26', '-bf', String(encoding.bFrames)]
        const keys = ['-g', gop, '-keyint_min', gop, '-sc_threshold', '0']
        await run('ffmpeg', ['-v', 'error', '-y', '-i', clip, '-an', ...x264, ...keys, path])
      }
      for (let round = 0; round < rounds; round += 1)
        for (const { way, cpu } of sums) cpu.push(await cpuMs(path, facts.pictures, ways[way] ?? []))
      const site = demoSites.find((name) => demoClip(name) === path)
      const truthAt = site === undefined ? undefined : await observed(`demo-${site}`)
      const whole: (readonly Detection[])[] = []
      for (const sum of sums.filter(({ way }) => way !== 'keyframes'))
        for (const [at, frame] of detector.framesOf(path, facts, fps, ways[sum.way]).entries()) {
          const found = await detector.detect(frame)
          const full = (whole[at] ??= found)
          sum.full += full.length
          sum.lost += alone(full, found)
          sum.other += alone(found, full)
          if (truthAt)
            countAgainstTruth(found, truthAt(Math.round((frame.ptsMs * framesPerSecond) / 1e3)), sum.tallies)
        }
    }
    for (const { way, cpu, full, lost, other, tallies } of sums) {
      const truth = [...tallies.values()]
      const right = truth.reduce((sum, tally) => sum + tally.right, 0)
      const labelled = truth.reduce((sum, tally) => sum + tally.labelled, 0)
      const boxes = {
        lostShare: lost / Math.max(1, full),
        otherShare: other / Math.max(1, full),
        full,
        right,
        labelled,
      }
      report(`decode-modes ${way}, ${stream}`, 'ms', { cpuMs: quantile(cpu, 0.5), ...boxes, rounds })
    }
  }
} finally {
  await detector.stop()
  await rm(folder, { recursive: true, force: true })
}
