import { analysedUrl, cameraUrlSettings, type CameraConfig } from '../../config/camera.js'
import { connectsAtOnce, type PipelineConfig } from '../../config/pipeline.js'
import { redactUrl } from '../../config/redact.js'
import { toErrorRecord } from '../../errors.js'
import { frameBytes, type Frame, type FrameFormat } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import type { CameraStatus } from '../../vision/camera-state.js'
import { atMost } from '../../lifecycle/delay.js'
import { createLog } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../sources/address-policy.js'
import { validateCameraUrl } from '../../sources/camera-url.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { createSource } from '../../sources/create-source.js'
import { MainStream } from '../../sources/main-picture.js'
import { checkTogether } from '../../sources/source-errors.js'
import type { SourceDeps } from '../../sources/source-deps.js'
import type { Finding } from '../findings.js'

const probeMs = 10_000
/** Small, because nobody looks at the pictures of a probe. */
const probeFormat: FrameFormat = { input: { widthPx: 64, heightPx: 64 }, align: 'center' }

/** What all cameras of a file have in common. */
type Setting = Pick<SourceDeps, 'mediaRoot' | 'addresses' | 'connectGate'>

/** Whether each camera's URL would be opened; with `probe`, whether a picture comes. */
export async function checkCameras(
  config: PipelineConfig,
  { probe }: { probe: boolean },
): Promise<Finding[]> {
  const setting: Setting = {
    mediaRoot: config.mediaRoot ?? '.',
    addresses: new AddressPolicy(config.cameraNetworks),
    connectGate: new ConnectGate(connectsAtOnce(config)),
  }
  return Promise.all(config.cameras.map((camera) => checkCamera(camera, probe, setting)))
}

async function checkCamera(camera: CameraConfig, probe: boolean, setting: Setting): Promise<Finding> {
  const subject = `camera ${camera.id}`
  try {
    checkTogether(camera)
    for (const name of cameraUrlSettings) {
      const url = camera[name]
      if (url !== undefined) await validateCameraUrl(url, setting)
    }
    const { kind } = await validateCameraUrl(analysedUrl(camera), setting)
    const detail = kind === 'push' ? 'pictures are pushed to it' : redactUrl(analysedUrl(camera))
    if (!camera.enabled) return { subject, state: 'skipped', detail: `${detail} (disabled)` }
    if (!probe || kind === 'push') return { subject, state: 'ok', detail }
    const found = await firstPicture(camera, setting)
    if (camera.analyseUrl === undefined || found.state !== 'ok') return { subject, ...found }
    return { subject, ...found, detail: `${found.detail}; ${await mainPicture(camera, setting)}` }
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { subject, state: 'failed', detail: message, fix: hint }
  }
}

/** @throws MainPictureError */
async function mainPicture(camera: CameraConfig, deps: Setting): Promise<string> {
  const { size } = await new MainStream({ camera, deps, withinMs: probeMs }).take()
  return `main stream ${size.widthPx}x${size.heightPx}`
}

/** Opens the camera exactly as the service would, until its first picture or its first failure. */
async function firstPicture(camera: CameraConfig, setting: Setting): Promise<Omit<Finding, 'subject'>> {
  let tell: (what: Frame | CameraStatus) => void = () => undefined
  const outcome = new Promise<Frame | CameraStatus>((resolve) => (tell = resolve))
  const source = await createSource(camera, {
    format: probeFormat,
    pool: new FramePool(frameBytes(probeFormat), 2),
    nextSeq: () => 1,
    log: createLog({ level: 'error', format: 'json' }, 'check'),
    ...setting,
    listener: {
      frame: tell,
      status: (status) => {
        if (status.state !== 'connecting' && status.state !== 'live') tell(status)
      },
      warning: () => undefined,
    },
  })
  const startedMs = performance.now()
  source.start()
  const first = await atMost(probeMs, outcome)
  const tookMs = Math.round(performance.now() - startedMs)
  await source.stop()
  const fix = 'see docs/runbooks/camera-not-live.md'
  if (first === undefined) return { state: 'failed', detail: `no picture within ${probeMs / 1000} s`, fix }
  if ('state' in first) return { state: 'failed', detail: first.reason, fix }
  const { widthPx, heightPx } = first.source
  return {
    state: 'ok',
    detail: `${widthPx}x${heightPx}, first picture after ${tookMs} ms`,
  }
}
