import type { CameraConfig } from '../config/camera.js'
import { analysedUrl, cameraUrlSettings } from '../config/camera-url-settings.js'
import { redactUrl } from '../config/redact.js'
import { toErrorRecord } from '../errors.js'
import type { Frame } from '../vision/frame.js'
import type { VideoStreamFacts } from '../vision/frame-source.js'
import type { SizePx } from '../vision/letterbox.js'
import { validateCameraUrl } from './camera-url.js'
import { firstPicture, type LookSetting, type LookWishes } from './first-picture.js'
import { MainStream } from './main-picture.js'
import { checkTogether } from './source-errors.js'

/** As many a second as a camera may send. */
const everyPicture = 120

const fixOfCamera = 'see docs/runbooks/camera-not-live.md'

/** How long a camera is looked at, in ms, and who is told what. */
export type CameraLookOptions = Readonly<{
  withinMs: number
  /** The same for a camera that has said by then that it sends. */
  openMs: number
  /** It has said so, and has sent nothing in `withinMs`. */
  waits?(): void
  /** For how long pictures are counted where the stream does not say how many it sends; in ms. */
  countedMs?: number
  /** The first picture, and the format that it was asked in; told before the camera is closed. */
  picture?(frame: Frame): void
}> &
  Pick<LookWishes, 'format' | 'signal'>

/** What was found out of a camera. Nothing in it holds credentials. */
export type CameraLook = Readonly<{
  state: 'ok' | 'failed' | 'skipped'
  /** One line for people. */
  detail: string
  /** What to do where it fails. */
  fix?: string
  /** Of the whole picture, as it is shown. */
  source?: SizePx
  /** Of the part that is analysed. */
  analysed?: SizePx
  stream?: VideoStreamFacts
  /** From opening it to the first picture. */
  tookMs?: number
  /** What it warned of until then, each once. */
  warnings: readonly string[]
}>

/**
 * Whether a camera's URLs would be opened; with `options`, whether a picture comes, as an engine would get it. One look for
 * `gantry check --probe` and for the preview of the API.
 *
 * Never rejects.
 */
export async function lookAtCamera(
  camera: CameraConfig,
  setting: LookSetting,
  options: CameraLookOptions | undefined,
): Promise<CameraLook> {
  try {
    checkTogether(camera)
    for (const name of cameraUrlSettings) {
      const url = camera[name]
      if (url !== undefined) await validateCameraUrl(url, setting)
    }
    const { kind } = await validateCameraUrl(analysedUrl(camera), setting)
    const detail = kind === 'push' ? 'pictures are pushed to it' : redactUrl(analysedUrl(camera))
    if (!camera.enabled) return { state: 'skipped', detail: `${detail} (disabled)`, warnings: [] }
    if (options === undefined || kind === 'push') return { state: 'ok', detail, warnings: [] }
    const found = await openedLook(camera, setting, options)
    if (camera.analyseUrl === undefined) return found
    if (found.state !== 'ok') return { ...found, detail: `analyseUrl: ${found.detail}` }
    const withinMs = (found.tookMs ?? 0) > options.withinMs ? options.openMs : options.withinMs
    const main = await mainPictureText(camera, setting, withinMs, options.signal)
    return { ...found, detail: `${found.detail}; ${main}` }
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { state: 'failed', detail: message, fix: hint, warnings: [] }
  }
}

/** @throws MainPictureError */
async function mainPictureText(
  camera: CameraConfig,
  deps: LookSetting,
  withinMs: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const main = new MainStream({ camera, deps, withinMs })
  const close = () => main.close()
  signal?.addEventListener('abort', close, { once: true })
  try {
    const { widthPx, heightPx } = (await main.take()).size
    return `main stream ${widthPx}x${heightPx}`
  } finally {
    signal?.removeEventListener('abort', close)
  }
}

async function openedLook(
  camera: CameraConfig,
  setting: LookSetting,
  { withinMs, openMs, waits, picture, format, signal, countedMs }: CameraLookOptions,
): Promise<CameraLook> {
  const startedMs = performance.now()
  const warned = new Set<string>()
  let stream: VideoStreamFacts | undefined
  let tookMs = 0
  let polled = ''
  let track = ''
  let sends = false
  const times = {
    withinMs,
    openMs,
    waits: () => {
      sends = true
      waits?.()
    },
  }
  const isCounted = countedMs !== undefined && /^rtsps?:/i.test(analysedUrl(camera))
  const countedAt: number[] = []
  const first = await firstPicture(
    isCounted ? { ...camera, sampleFps: everyPicture } : camera,
    setting,
    times,
    (what, { decode }) => {
      tookMs = Math.round(performance.now() - startedMs)
      if (decode?.polledFps !== undefined) polled = `snapshot, polled at ${decode.polledFps} fps, `
      if (decode?.track !== undefined) track = `${decode.track} (videoTrack), `
      if (!('state' in what)) picture?.(what)
    },
    {
      ...(format !== undefined && { format }),
      ...(signal !== undefined && { signal }),
      warning: (_, detail) => warned.add(detail),
      stream: (facts) => (stream = facts),
      ...(isCounted && { countedMs, counted: (ptsMs) => countedAt.push(ptsMs) }),
    },
  )
  const fps = stream?.fps ?? rateOf(countedAt)
  const facts = stream && { ...stream, ...(fps !== undefined && { fps }) }
  const told = { warnings: [...warned], ...(facts !== undefined && { stream: facts }) }
  if (first === undefined) {
    const detail = sends
      ? `it answers, and no picture came within ${openMs / 1_000} s`
      : `no picture within ${withinMs / 1_000} s`
    return { state: 'failed', detail, fix: fixOfCamera, ...told }
  }
  if ('state' in first) return { state: 'failed', detail: first.reason, fix: fixOfCamera, ...told }
  const { source, regionPx } = first
  const rarely = sends ? `: it sends fewer than one in ${withinMs / 1_000} s` : ''
  return {
    state: 'ok',
    detail: `${source.widthPx}x${source.heightPx}, ${polled}${track}first picture after ${tookMs} ms${rarely}`,
    source,
    analysed: { widthPx: regionPx.widthPx, heightPx: regionPx.heightPx },
    tookMs,
    ...told,
  }
}

/** Pictures a second, by the times of some that came one after another; undefined where they are too few. */
function rateOf(ptsMs: readonly number[]): number | undefined {
  const [first, last] = [ptsMs[0] ?? 0, ptsMs.at(-1) ?? 0]
  if (ptsMs.length < 3 || last <= first) return undefined
  return Math.round(((ptsMs.length - 1) * 10_000) / (last - first)) / 10
}
