import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type ClipSpec = Readonly<{
  widthPx?: number
  heightPx?: number
  fps?: number
  seconds?: number
  /** Pictures from one key frame to the next. */
  gop?: number
  bFrames?: number
  /** lavfi source; the test pattern by default. */
  source?: string
  codec?: readonly string[]
}>

/** Runs ffmpeg for test material and waits for it. */
export async function ffmpegRun(...args: readonly string[]): Promise<void> {
  await run('ffmpeg', ['-v', 'error', '-y', '-nostdin', ...args])
}

/** Makes a small clip of moving test patterns. */
export async function makeClip(path: string, spec: ClipSpec = {}): Promise<string> {
  const { widthPx = 320, heightPx = 180, fps = 25, seconds = 3, gop = 25, bFrames = 0 } = spec
  const source = spec.source ?? `testsrc2=s=${widthPx}x${heightPx}:r=${fps}:d=${seconds}`
  const h264 = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-g',
    String(gop),
    '-keyint_min',
    String(gop),
    '-sc_threshold',
    '0',
  ]
  const codec = spec.codec ?? [...h264, '-bf', String(bFrames), '-pix_fmt', 'yuv420p']
  await ffmpegRun('-f', 'lavfi', '-i', source, ...codec, path)
  return path
}

/** A folder of its own that goes when the test ends. */
export async function tempFolder(): Promise<
  Readonly<{ path: string; file: (name: string) => string; remove: () => Promise<void> }>
> {
  const path = await mkdtemp(join(tmpdir(), 'gantry-test-'))
  return {
    path,
    file: (name) => join(path, name),
    remove: () => rm(path, { recursive: true, force: true }),
  }
}

/** Cuts a clip into pieces of a second beside the HLS list at `path`. */
export function makePlayList(clip: string, path: string): Promise<void> {
  return ffmpegRun('-i', clip, '-c', 'copy', '-hls_time', '1', '-hls_list_size', '0', path)
}
