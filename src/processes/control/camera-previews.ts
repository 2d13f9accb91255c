import type { CameraNetworks } from '../../config/camera-networks.js'
import type { CameraPreviewRequest } from '../../config/camera-preview.js'
import { analysedUrl } from '../../config/camera-url-settings.js'
import type { CameraPreview } from '../../api/preview-schema.js'
import { PreviewsBusyError } from '../../api/errors.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { Log } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { lookAtCamera } from '../../sources/camera-look.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { frameAsJpeg } from '../../sources/frame-jpeg.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'
import type { SizePx } from '../../vision/letterbox.js'

/** Cameras that are looked at at once: each is a decoder in the service's own machine. */
const mostAtOnce = 3
const withinMs = 10_000
/** Of a camera that answers and waits for its next key frame. */
const openMs = 20_000
/** Large enough to see and to draw in, and small enough for an answer. */
const format: FrameFormat = { input: { widthPx: 1_280, heightPx: 1_280 }, align: 'center' }
const quality = 80
/** Of a stream that does not say how many pictures it sends in a second. */
const countedMs = 700

export type PreviewDeps = Readonly<{
  directory: CameraDirectory
  mediaRoot: string
  cameraNetworks: CameraNetworks
  log: Log
}>

/** Looks at cameras before they are added or changed: opens them as an engine would, until the first picture, and keeps nothing. */
export class CameraPreviews {
  readonly #gate = new ConnectGate(mostAtOnce)
  readonly #ended = new AbortController()
  #underWay = 0

  constructor(readonly deps: PreviewDeps) {}

  /**
   * @param signal - whoever asks is gone.
   * @throws CameraSettingError, CameraUrlError; PreviewsBusyError while as many are under way as may be.
   */
  async look(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview> {
    if (this.#underWay >= mostAtOnce) throw new PreviewsBusyError(mostAtOnce)
    this.#underWay += 1
    try {
      return await this.#look(asked, AbortSignal.any([signal, this.#ended.signal]))
    } finally {
      this.#underWay -= 1
    }
  }

  /** Cuts those that are under way. Idempotent. */
  close(): void {
    this.#ended.abort(new Error('the service is stopping'))
  }

  async #look(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview> {
    const { directory, mediaRoot, cameraNetworks, log } = this.deps
    const camera = await directory.tried(asked)
    const closed = [camera.url, analysedUrl(camera)].some((url) =>
      directory.loopbackClosedFor(camera.id, url),
    )
    const setting = {
      mediaRoot,
      addresses: new AddressPolicy({ ...cameraNetworks, loopbackClosed: closed }),
      connectGate: this.#gate,
      log: log.child({ cameraId: camera.id, preview: true }),
    }
    let jpeg: Promise<Readonly<{ jpeg: Uint8Array; size: SizePx }>> | undefined
    const picture = (frame: Frame): void => {
      jpeg = frameAsJpeg(frame, format, quality)
    }
    // The region is drawn into the whole picture.
    const { region: _, ...whole } = camera
    const look = await lookAtCamera(whole, setting, { withinMs, openMs, countedMs, format, signal, picture })
    const shown = await jpeg
    return {
      state: look.state === 'failed' ? 'failed' : 'ok',
      detail: look.detail,
      hint: look.fix ?? '',
      source: look.source ?? null,
      codec: look.stream?.codec ?? null,
      fps: look.stream?.fps ?? null,
      firstPictureMs: look.tookMs ?? null,
      warnings: [...look.warnings],
      picture: shown
        ? { ...shown.size, mime: 'image/jpeg', base64: Buffer.from(shown.jpeg).toString('base64') }
        : null,
    }
  }
}
