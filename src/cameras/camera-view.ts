import type { CameraConfig } from '../config/camera.js'
import { mask, redactUrl } from '../config/redact.js'
import { emptyFrameCounts, type FrameCounts } from '../vision/accounting.js'
import type { CameraStatus } from '../vision/camera-state.js'

/** A camera as the API shows it; its login is masked, in its URLs and beside them. */
export type CameraView = Readonly<{
  id: string
  config: CameraConfig
  /** Came by API and is kept over a restart. */
  persist: boolean
  /** Where the camera was defined: the pipeline file or the API. */
  origin: 'file' | 'api'
  status: CameraStatus
  stats: CameraStats
  /** Of a cluster, the node that has it; `null` while none has. */
  node?: string | null
}>

/** Settings as they may be shown. */
export function shownConfig(config: CameraConfig): CameraConfig {
  const { url, analyseUrl, username, password } = config
  return {
    ...config,
    url: redactUrl(url),
    ...(analyseUrl === undefined ? {} : { analyseUrl: redactUrl(analyseUrl) }),
    ...(username === undefined ? {} : { username: mask }),
    ...(password === undefined ? {} : { password: mask }),
  }
}

export type CameraStats = Readonly<{
  /** Frames analysed per second, over the last ten seconds. */
  inferredFps: number
  receivedFps: number
  /** Capture to publish, over the last results. */
  latencyMs: Readonly<{ p50: number; p99: number }> | null
  frames: FrameCounts
  /** Share of one core that the decoder uses. */
  decoderCpuShare: number
  /** The very same picture has come for `frozenAfterMs`. */
  frozen: boolean
  source: Readonly<{ widthPx: number; heightPx: number }> | null
}>

/** Of a camera that nothing is known of yet. */
export const noStats: CameraStats = {
  inferredFps: 0,
  receivedFps: 0,
  latencyMs: null,
  frames: emptyFrameCounts(),
  decoderCpuShare: 0,
  frozen: false,
  source: null,
}
