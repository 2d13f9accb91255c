import type { CameraConfig } from '../config/camera.js'
import { wallMs } from '../lifecycle/clock.js'
import type { CameraStatus } from '../frames/camera-state.js'
import type { FrameSource } from '../frames/frame-source.js'
import { validateCameraUrl } from './camera-url.js'
import { FolderSource } from './folder-source.js'
import { PushSource } from './push-source.js'
import type { SourceDeps } from './source-deps.js'
import { SupervisedSource } from './supervised-source.js'

/**
 * The source for a camera, not yet started.
 *
 * A URL that is refused does not throw: the source is `failed` and says why, as it would for a camera that cannot be opened.
 */
export async function createSource(camera: CameraConfig, deps: SourceDeps): Promise<FrameSource> {
  if (!camera.enabled) return new IdleSource('disabled', 'switched off', deps)
  try {
    const location = await validateCameraUrl(camera.url, { mediaRoot: deps.mediaRoot })
    switch (location.kind) {
      case 'push':
        return new PushSource(camera, deps)
      case 'folder':
        return new FolderSource(camera, location.path, deps)
      case 'rtsp':
      case 'http':
      case 'file':
        return new SupervisedSource(camera, location, deps)
      default:
        return location satisfies never
    }
  } catch (error) {
    return new IdleSource('failed', error instanceof Error ? error.message : String(error), deps)
  }
}

export function isPushSource(source: FrameSource): source is PushSource {
  return source instanceof PushSource
}

/** A camera that delivers nothing, for a reason. */
class IdleSource implements FrameSource {
  readonly status: CameraStatus

  constructor(
    state: 'disabled' | 'failed',
    reason: string,
    readonly deps: SourceDeps,
  ) {
    this.status = { state, reason, sinceMs: wallMs(), attempts: 0 }
  }

  decoderCpuSeconds(): number {
    return 0
  }

  start(): void {
    this.deps.listener.status(this.status)
  }

  async stop(): Promise<void> {
    return Promise.resolve()
  }
}
