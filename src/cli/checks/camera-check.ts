import type { CameraConfig } from '../../config/camera.js'
import { analysedUrl, cameraUrlSettings } from '../../config/camera-url-settings.js'
import { connectsAtOnce, type PipelineConfig } from '../../config/pipeline.js'
import { redactUrl } from '../../config/redact.js'
import { toErrorRecord } from '../../errors.js'
import { type CameraShapes, sizeText } from '../../detector/input-size.js'
import type { SizePx } from '../../vision/letterbox.js'
import { createLog } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../sources/address-policy.js'
import { validateCameraUrl } from '../../sources/camera-url.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { firstPicture, type LookSetting } from '../../sources/first-picture.js'
import { MainStream } from '../../sources/main-picture.js'
import { checkTogether } from '../../sources/source-errors.js'
import type { Finding } from '../findings.js'

const probeMs = 10_000
/** Two pictures of a camera that sends one a minute, and some. */
const openProbeMs = 150_000

/** What was found out of a camera, and how large the part of its picture is that is analysed, where it was opened. */
type CameraLook = Omit<Finding, 'subject'> & Readonly<{ analysed?: SizePx; tookMs?: number }>

/**
 * Whether each camera's URL would be opened; with `probe`, whether a picture comes: of one that sends and takes long, `say` is told. `shapes` is what is known then of those that are
 * enabled.
 */
export async function checkCameras(
  config: PipelineConfig,
  { probe, say = () => undefined }: { probe: boolean; say?: (line: string) => void },
): Promise<Readonly<{ findings: readonly Finding[]; shapes: CameraShapes }>> {
  const setting: LookSetting = {
    mediaRoot: config.mediaRoot ?? '.',
    addresses: new AddressPolicy(config.cameraNetworks),
    connectGate: new ConnectGate(connectsAtOnce(config)),
    log: createLog({ level: 'error', format: 'json' }, 'check'),
  }
  const looks = await Promise.all(
    config.cameras.map((camera) => checkCamera(camera, probe ? say : undefined, setting)),
  )
  return {
    findings: looks.map(({ analysed: _, tookMs: __, ...look }, index) => ({
      subject: `camera ${config.cameras[index]?.id ?? ''}`,
      ...look,
    })),
    shapes: {
      pictures: looks.flatMap(({ analysed }) => analysed ?? []),
      cameras: config.cameras.filter(({ enabled }) => enabled).length,
    },
  }
}

/** @param say - absent: it is not opened. */
async function checkCamera(
  camera: CameraConfig,
  say: ((line: string) => void) | undefined,
  setting: LookSetting,
): Promise<CameraLook> {
  try {
    checkTogether(camera)
    for (const name of cameraUrlSettings) {
      const url = camera[name]
      if (url !== undefined) await validateCameraUrl(url, setting)
    }
    const { kind } = await validateCameraUrl(analysedUrl(camera), setting)
    const detail = kind === 'push' ? 'pictures are pushed to it' : redactUrl(analysedUrl(camera))
    if (!camera.enabled) return { state: 'skipped', detail: `${detail} (disabled)` }
    if (say === undefined || kind === 'push') return { state: 'ok', detail }
    const found = await lookAt(camera, setting, say)
    if (camera.analyseUrl === undefined) return found
    if (found.state !== 'ok') return { ...found, detail: `analyseUrl: ${found.detail}` }
    const withinMs = found.tookMs > probeMs ? openProbeMs : probeMs
    return { ...found, detail: `${found.detail}; ${await mainPicture(camera, setting, withinMs)}` }
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { state: 'failed', detail: message, fix: hint }
  }
}

/** @throws MainPictureError */
async function mainPicture(camera: CameraConfig, deps: LookSetting, withinMs: number): Promise<string> {
  const { size } = await new MainStream({ camera, deps, withinMs }).take()
  return `main stream ${sizeText(size)}`
}

async function lookAt(
  camera: CameraConfig,
  setting: LookSetting,
  say: (line: string) => void,
): Promise<CameraLook & Readonly<{ tookMs: number }>> {
  const startedMs = performance.now()
  let tookMs = 0
  let polled = ''
  let track = ''
  let sends = false
  const waits = () => {
    sends = true
    say(
      `camera ${camera.id} answers, and has sent no picture in ${probeMs / 1_000} s: waiting up to ${openProbeMs / 1_000} s`,
    )
  }
  const times = { withinMs: probeMs, openMs: openProbeMs, waits }
  const first = await firstPicture(camera, setting, times, (_, { decode }) => {
    tookMs = Math.round(performance.now() - startedMs)
    if (decode?.polledFps !== undefined) polled = `snapshot, polled at ${decode.polledFps} fps, `
    if (decode?.track !== undefined) track = `${decode.track} (videoTrack), `
  })
  const fix = 'see docs/runbooks/camera-not-live.md'
  if (first === undefined) {
    const detail = sends
      ? `it answers, and no picture came within ${openProbeMs / 1_000} s`
      : `no picture within ${probeMs / 1_000} s`
    return { state: 'failed', detail, fix, tookMs }
  }
  if ('state' in first) return { state: 'failed', detail: first.reason, fix, tookMs }
  const { source, regionPx } = first
  const rarely = sends ? `: it sends fewer than one in ${probeMs / 1_000} s` : ''
  return {
    state: 'ok',
    detail: `${sizeText(source)}, ${polled}${track}first picture after ${tookMs} ms${rarely}`,
    analysed: { widthPx: regionPx.widthPx, heightPx: regionPx.heightPx },
    tookMs,
  }
}
