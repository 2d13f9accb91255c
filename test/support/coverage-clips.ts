import { execFileSync, spawn } from 'node:child_process'
import { extname } from 'node:path'
import { PictureLine } from '../../src/coverage/picture-line.js'
import { PictureChecks } from '../../src/processes/engine/picture-checks.js'
import type { PictureTrouble } from '../../src/vision/coverage.js'
import type { Frame } from '../../src/vision/frame.js'
import type { CoverageFault, ExpectedCauses } from './coverage-faults.js'

export const playedSize = { widthPx: 640, heightPx: 360 } as const
/** Seconds of a clip, and of what is worse in it. */
export const played = { seconds: 60, fromS: 25, toS: 45 } as const
/** Pictures a second, as of a camera that is sampled seldom. */
const fps = 2
/** Shorter than the shortest freeze of a scenario. */
const frozenAfterMs = 3_000

const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24']
const frameBytes = playedSize.widthPx * playedSize.heightPx * 3

/** The clip again and again, or a photograph as a camera with a noisy sensor shows it; two pictures a second, as an engine would get them. */
export function rawFrames(clip: string, seconds: number = played.seconds): Buffer {
  const isStill = /^\.(jpe?g|png)$/.test(extname(clip))
  const repeated = isStill ? ['-loop', '1', '-framerate', `${fps}`] : ['-stream_loop', '-1']
  const scaled = `fps=${fps},scale=${playedSize.widthPx}:${playedSize.heightPx}${isStill ? ',noise=alls=6:allf=t' : ''}`
  return execFileSync(
    'ffmpeg',
    ['-v', 'error', ...repeated, '-i', clip, '-t', `${seconds}`, '-vf', scaled, ...raw, '-'],
    { maxBuffer: frameBytes * fps * (seconds + 1) },
  )
}

/** Its pictures, made worse by ffmpeg from `played.fromS` to `played.toS`. The buffer is the same each time. */
export async function* worsened(clip: Buffer, { filter, holds }: CoverageFault): AsyncGenerator<Uint8Array> {
  const { fromS, toS } = played
  const graph = `[0:v]split[a][b];[b]${filter}[c];[a][c]overlay=enable='between(t,${fromS},${toS - 0.01})':format=rgb`
  const input = ['-r', `${fps}`, '-s', `${playedSize.widthPx}x${playedSize.heightPx}`]
  const ffmpeg = spawn(
    'ffmpeg',
    ['-v', 'error', ...raw, ...input, '-i', '-', '-filter_complex', graph, ...raw, '-'],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  ffmpeg.stdin.end(clip)
  const bytes = new Uint8Array(frameBytes)
  let [filled, frame] = [0, 0]
  for await (const chunk of ffmpeg.stdout as AsyncIterable<Buffer>)
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(chunk.length - at, bytes.length - filled)
      const isHeld = holds === true && frame / fps >= fromS && frame / fps < toS
      if (!isHeld) bytes.set(chunk.subarray(at, at + taken), filled)
      at += taken
      filled += taken
      if (filled < bytes.length) continue
      filled = 0
      frame += 1
      yield bytes
    }
}

/**
 * The pictures as they are; the last one again where it is held, since an encoder makes a little of its own of each. The buffer is the same each
 * time.
 */
export function* asTheyAre(clip: Buffer, isHeld: (second: number) => boolean): Generator<Uint8Array> {
  const bytes = new Uint8Array(frameBytes)
  for (let frame = 0; (frame + 1) * frameBytes <= clip.length; frame += 1) {
    const at = frame * frameBytes
    if (!isHeld(frame / fps)) bytes.set(clip.subarray(at, at + frameBytes))
    yield bytes
  }
}

export type PlayedCauses = Readonly<{
  /** By second. */
  causes: readonly (PictureTrouble | null)[]
  frames: number
  checkMs: number
}>

/** What the checks of an engine say of each second, with every change back-dated as the ledger does. */
export async function causesOf(
  pictures: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<PlayedCauses> {
  const checks = new PictureChecks(frozenAfterMs)
  const line = new PictureLine()
  let [frames, checkMs] = [0, 0]
  for await (const bytes of pictures) {
    const atMs = (frames * 1_000) / fps
    frames += 1
    const beganMs = performance.now()
    checks.frame(frameOf(bytes, frames, atMs), { input: playedSize, align: 'center' })
    checkMs += performance.now() - beganMs
    line.told(checks.verdict, atMs)
  }
  const causes = Array.from({ length: Math.floor(frames / fps) }, (_, second) => {
    const [part] = line.within(second * 1_000, second * 1_000 + 1)
    return part?.trouble ?? null
  })
  return { causes, frames, checkMs }
}

function frameOf(bytes: Uint8Array, seq: number, atMs: number): Frame {
  return {
    cameraId: 'clip',
    seq,
    capturedAtMs: atMs,
    arrivedMs: atMs,
    ptsMs: atMs,
    quality: 'ok',
    source: playedSize,
    regionPx: { x: 0, y: 0, ...playedSize },
    letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
    rgbHwc: bytes.buffer as ArrayBuffer,
  }
}

/** What is to be told of each second of a clip that is worse from `played.fromS` to `played.toS`; undefined where a border lies. */
export function expectedOf({ expected }: CoverageFault): (ExpectedCauses | undefined)[] {
  const { seconds, fromS, toS } = played
  return Array.from({ length: seconds }, (_, second) => {
    if (second === fromS || second === toS) return undefined
    return second > fromS && second < toS ? expected : [null]
  })
}

export type CoverageScore = Readonly<{
  /** Seconds in which nobody could see the scene, told with a right cause, and not. */
  right: number
  wrong: number
  /** Seconds in which one could, and those of them that were told to be blind. */
  sound: number
  falseAlarms: number
  /** What was told instead, by seconds: `covered for moved`. */
  mistakes: Readonly<Record<string, number>>
}>

export function scoreOf(
  causes: readonly (PictureTrouble | null)[],
  expected: readonly (ExpectedCauses | undefined)[],
): CoverageScore {
  const mistakes: Record<string, number> = {}
  let [right, wrong, sound, falseAlarms] = [0, 0, 0, 0]
  causes.forEach((told, second) => {
    const here = expected[second]
    if (here === undefined) return
    const isRight = here.includes(told)
    if (here.includes(null)) {
      sound += 1
      if (!isRight) falseAlarms += 1
    } else if (isRight) right += 1
    else wrong += 1
    if (isRight) return
    const mistake = `${told ?? 'watched'} for ${here.map((cause) => cause ?? 'watched').join(' or ')}`
    mistakes[mistake] = (mistakes[mistake] ?? 0) + 1
  })
  return { right, wrong, sound, falseAlarms, mistakes }
}

export function sumOfScores(scores: readonly CoverageScore[]): CoverageScore {
  const sum = (key: 'right' | 'wrong' | 'sound' | 'falseAlarms') =>
    scores.reduce((total, score) => total + score[key], 0)
  const mistakes: Record<string, number> = {}
  for (const score of scores)
    for (const [mistake, seconds] of Object.entries(score.mistakes))
      mistakes[mistake] = (mistakes[mistake] ?? 0) + seconds
  return {
    right: sum('right'),
    wrong: sum('wrong'),
    sound: sum('sound'),
    falseAlarms: sum('falseAlarms'),
    mistakes,
  }
}
