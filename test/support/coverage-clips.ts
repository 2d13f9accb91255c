import { execFileSync, spawn } from 'node:child_process'
import { picturePlane } from '../../src/coverage/picture/picture-plane.js'
import { PictureWatch } from '../../src/coverage/picture/picture-watch.js'
import type { PictureTrouble } from '../../src/vision/coverage.js'

const size = { widthPx: 640, heightPx: 360 } as const
/** Seconds of a clip, and of what is worse in it. */
export const played = { seconds: 60, fromS: 25, toS: 45 } as const

type Fault = Readonly<{ cause: PictureTrouble | null; filter: string }>

/** What ffmpeg makes of clips, and the cause that there is to be; null where a camera sees on. */
export const coverageFaults: Readonly<Record<string, Fault>> = {
  none: { cause: null, filter: 'null' },
  noise: { cause: null, filter: 'noise=alls=25:allf=t' },
  'half the light': { cause: null, filter: 'eq=contrast=0.6:brightness=-0.15' },
  flicker: { cause: null, filter: `eq=brightness='0.08*sin(t*40)':eval=frame` },
  'third covered': { cause: null, filter: 'drawbox=w=iw/3:t=fill:color=0x404040' },
  cloth: {
    cause: 'covered',
    filter: 'gblur=sigma=60,lutrgb=r=val/3+40:g=val/3+30:b=val/3+20,drawbox=t=fill:color=0x504030@0.9',
  },
  grey: { cause: 'covered', filter: 'drawbox=t=fill:color=0x707070,noise=alls=8:allf=t' },
  black: { cause: 'covered', filter: 'drawbox=t=fill:color=black' },
  'most covered': { cause: 'covered', filter: 'drawbox=w=iw*0.85:t=fill:color=0x303030,noise=alls=4:allf=t' },
  'no light': { cause: 'dark', filter: 'eq=brightness=-0.6' },
  'little light': { cause: 'dark', filter: 'lutrgb=r=val/12:g=val/12:b=val/12,noise=alls=6:allf=t' },
  'soft blur': { cause: 'blurred', filter: 'gblur=sigma=3' },
  blur: { cause: 'blurred', filter: 'gblur=sigma=6' },
  'strong blur': { cause: 'blurred', filter: 'gblur=sigma=14' },
  pushed: { cause: 'moved', filter: 'crop=iw*0.85:ih*0.85:iw*0.15:ih*0.15,scale=iw/0.85:ih/0.85' },
  turned: { cause: 'moved', filter: 'rotate=20*PI/180' },
  elsewhere: { cause: 'moved', filter: 'hflip,vflip' },
}

export type PlayedCauses = Readonly<{
  /** By second. */
  causes: readonly (PictureTrouble | null)[]
  looks: number
  lookMs: number
}>

const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24']
const input = ['-r', '2', '-s', `${size.widthPx}x${size.heightPx}`]
const frameBytes = size.widthPx * size.heightPx * 3

/** The clip again and again, two pictures a second, as an engine would get them. */
export function rawFrames(clip: string): Buffer {
  const args = ['-v', 'error', '-stream_loop', '-1', '-i', clip, '-t', String(played.seconds)]
  const scaled = ['-vf', `fps=2,scale=${size.widthPx}:${size.heightPx}`]
  return execFileSync('ffmpeg', [...args, ...scaled, ...raw, '-'], {
    maxBuffer: frameBytes * 2 * (played.seconds + 1),
  })
}

/** What the checks say of each second of a clip, with every change back-dated as the ledger does. */
export async function causesOf(clip: Buffer, filter: string): Promise<PlayedCauses> {
  const { seconds, fromS, toS } = played
  const graph = `[0:v]split[a][b];[b]${filter}[c];[a][c]overlay=enable='between(t,${fromS},${toS - 0.01})':format=rgb`
  const ffmpeg = spawn(
    'ffmpeg',
    ['-v', 'error', ...raw, ...input, '-i', '-', '-filter_complex', graph, ...raw, '-'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  ffmpeg.stdin.end(clip)
  const watch = new PictureWatch()
  const changes: { atMs: number; trouble: PictureTrouble | null }[] = []
  let [frame, looks, lookMs] = [0, 0, 0]
  const bytes = new Uint8Array(frameBytes)
  let filled = 0
  for await (const chunk of ffmpeg.stdout as AsyncIterable<Buffer>)
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(chunk.length - at, bytes.length - filled)
      bytes.set(chunk.subarray(at, at + taken), filled)
      at += taken
      filled += taken
      if (filled < bytes.length) continue
      filled = 0
      const atMs = frame * 500
      frame += 1
      if (!watch.wants(atMs)) continue
      const beganMs = performance.now()
      watch.look(picturePlane(bytes.buffer, size.widthPx, { xPx: 0, yPx: 0, ...size }), atMs)
      lookMs += performance.now() - beganMs
      looks += 1
      const { trouble, sinceMs } = watch.verdict
      if (changes.at(-1)?.trouble !== trouble) changes.push({ atMs: sinceMs, trouble })
    }
  const causes = Array.from({ length: seconds }, (_, second) => {
    const change = changes.findLast(({ atMs }) => atMs <= second * 1_000)
    return change?.trouble ?? null
  })
  return { causes, looks, lookMs }
}

/** Seconds by what was said of them while the clip is worse; `falseAlarms` are those of sound seconds. */
export function confusionOf({ causes }: PlayedCauses, cause: PictureTrouble | null): Record<string, number> {
  const { fromS, toS } = played
  const counts: Record<string, number> = {}
  const count = (key: string) => (counts[key] = (counts[key] ?? 0) + 1)
  causes.forEach((told, second) => {
    // A border lies within a second.
    if (second === fromS || second === toS) return
    if (second < fromS || second > toS) {
      if (told !== null) count('falseAlarms')
      return
    }
    count(told === cause ? 'right' : 'wrong')
    count(told ?? 'watched')
  })
  return counts
}
