import { execFile } from 'node:child_process'
import { ratioOf } from '../config/aspect-ratio.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'

const mostProbeBytes = 8 * 1024 ** 2

/** The first video of a file. */
export type VideoFacts = Readonly<{
  codec: string
  widthPx: number
  heightPx: number
  /** How wide its pixels are for their height, as the file says; 1 where it says nothing. */
  pixelAspect: number
  /** It is shown turned by a quarter, so that its sides change places. */
  turned: boolean
  /** Where the file tells it. */
  seconds: number | undefined
  /** Pictures a second, where the file tells it. */
  fps: number | undefined
}>

/** What ffprobe prints of a file. */
type Probed = Readonly<{
  streams?: readonly Readonly<{
    codec_name?: string
    width?: number
    height?: number
    sample_aspect_ratio?: string
    avg_frame_rate?: string
    side_data_list?: readonly Readonly<{ rotation?: number }>[]
  }>[]
  format?: Readonly<{ duration?: string }>
}>

/**
 * Asks ffprobe about a file on disk.
 *
 * @returns `undefined` where it holds no video.
 * @throws Error with ffprobe's own words where it cannot be read.
 */
export function probeVideo(path: string): Promise<VideoFacts | undefined> {
  const input = `file:${path}`
  const shown = ['-select_streams', 'V:0', '-show_streams', '-show_format']
  const options = ['-v', 'error', '-protocol_whitelist', 'file', ...shown]
  const [command, args] = withDeathSignal('ffprobe', [...options, '-of', 'json', input])
  return new Promise((resolve, reject) => {
    execFile(command, args, { maxBuffer: mostProbeBytes }, (error, stdout, stderr) => {
      if (error) {
        const words = stderr.trim() === '' ? error.message : stderr.trim()
        return reject(new Error(words.split('\n').at(-1)?.replace(`${input}: `, '')))
      }
      const { streams: [first] = [], format } = JSON.parse(stdout) as Probed
      if (first?.codec_name === undefined) return resolve(undefined)
      const rotation = first.side_data_list?.find((data) => data.rotation !== undefined)?.rotation ?? 0
      const seconds = Number(format?.duration)
      const [pictures = 0, inSeconds = 0] = (first.avg_frame_rate ?? '').split('/').map(Number)
      resolve({
        codec: first.codec_name,
        widthPx: first.width ?? 0,
        heightPx: first.height ?? 0,
        pixelAspect: ratioOf(first.sample_aspect_ratio ?? '') || 1,
        turned: Math.abs(rotation) % 180 === 90,
        seconds: Number.isFinite(seconds) ? seconds : undefined,
        fps: pictures > 0 && inSeconds > 0 ? pictures / inSeconds : undefined,
      })
    })
  })
}
