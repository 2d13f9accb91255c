import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { GantryError } from '../../errors.js'
import { withDeathSignal } from '../../lifecycle/death-signal.js'
import { clipArguments } from '../../sources/ffmpeg-command.js'
import { probeVideo } from '../../sources/probe-video.js'
import { nalTypes, splitNalUnits } from './nal-units.js'

/** One coded picture: NAL units without start codes, in decoding order. Times are ms from the first picture's decoding. */
export type AccessUnit = Readonly<{ dtsMs: number; ptsMs: number; key: boolean; nals: readonly Buffer[] }>

/** A clip in memory, ready to be sent again and again. */
export type Clip = Readonly<{
  units: readonly AccessUnit[]
  /** Time after which the clip begins again. */
  durationMs: number
  /** Parameter sets, for the session description. */
  sps: Buffer
  pps: Buffer
}>

export class ClipError extends GantryError {
  readonly code = 'GANTRY_SOURCE_FAILED'
  readonly hint = 'Check that the file plays with ffplay and that ffmpeg has libx264.'
  constructor(path: string, detail: string) {
    super(`clip ${path} cannot be served: ${detail}`)
    this.name = 'ClipError'
  }
}

/** Reads a clip; one that is not H.264 is encoded once. @throws ClipError */
export async function loadClip(path: string): Promise<Clip> {
  const video = await probeVideo(path).catch((error: unknown) => {
    throw new ClipError(path, error instanceof Error ? error.message : String(error))
  })
  if (video === undefined) throw new ClipError(path, 'it holds no video')
  const parts = await takeApart(clipArguments(path, video.codec !== 'h264'))
  if (!parts.ok) throw new ClipError(path, parts.message)
  const units = accessUnits(parts.video, parts.index)
  const nals = units.flatMap((unit) => unit.nals)
  const sps = nals.find((nal) => nalTypes.of(nal) === nalTypes.sps)
  const pps = nals.find((nal) => nalTypes.of(nal) === nalTypes.pps)
  if (sps === undefined || pps === undefined || units[0]?.key !== true)
    throw new ClipError(path, 'it does not begin with a key frame')
  return { units, durationMs: durationOf(units), sps, pps }
}

type Parts = Readonly<{ ok: true; video: Buffer; index: string } | { ok: false; message: string }>

async function takeApart(args: readonly string[]): Promise<Parts> {
  return new Promise((resolve) => {
    const child = spawn(...withDeathSignal('ffmpeg', args), { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
    const video = collect(child.stdout)
    const errors = collect(child.stderr)
    const index = collect(child.stdio[3] as Readable)
    child.once('error', (error) => resolve({ ok: false, message: error.message }))
    child.once('close', (code) => {
      if (code === 0 && video.length > 0)
        resolve({ ok: true, video: Buffer.concat(video), index: Buffer.concat(index).toString() })
      else resolve({ ok: false, message: Buffer.concat(errors).toString().trim().split('\n').at(-1) ?? '' })
    })
  })
}

function collect(stream: Readable | null): Buffer[] {
  const chunks: Buffer[] = []
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk))
  return chunks
}

/** Cuts the byte stream where the index says. Lines read `stream, dts, pts, duration, size, crc`, times in `#tb` units. */
function accessUnits(video: Buffer, index: string): readonly AccessUnit[] {
  const base = /#tb 0: (\d+)\/(\d+)/.exec(index)
  const tickMs = (1e3 * Number(base?.[1] ?? 1)) / Number(base?.[2] ?? 1e3)
  const rows = index
    .split('\n')
    .filter((line) => line.startsWith('0,'))
    .map((line) => line.split(',').map((field) => Number(field.trim())))
  const firstDts = rows[0]?.[1] ?? 0
  let offset = 0
  return rows.map(([, dts = 0, pts = 0, , size = 0]) => {
    const nals = splitNalUnits(video.subarray(offset, offset + size))
    offset += size
    return {
      dtsMs: (dts - firstDts) * tickMs,
      ptsMs: (pts - firstDts) * tickMs,
      key: nals.some((nal) => nalTypes.of(nal) === nalTypes.idr),
      nals: nals.filter((nal) => nalTypes.of(nal) !== nalTypes.delimiter),
    }
  })
}

function durationOf(units: readonly AccessUnit[]): number {
  const last = units.at(-1)?.dtsMs ?? 0
  return last + (units.length > 1 ? last / (units.length - 1) : 40)
}
