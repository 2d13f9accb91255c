import type { CameraConfig } from '../config/camera.js'
import { openedUrl } from '../config/camera-url-settings.js'
import type { CameraStatus } from '../vision/camera-state.js'
import type { FrameSource } from '../vision/frame-source.js'
import { wallMs } from '../lifecycle/clock.js'
import { RepeatedLines } from '../lifecycle/repeated-lines.js'
import { validateCameraUrl, type CameraLocation } from './camera-url.js'
import { initialDecodeState } from './decode-policy.js'
import { DecodeWays } from './decode-ways.js'
import type { DecodedLocation } from './decoder-input.js'
import type { DecoderMemory } from './decoder-memory.js'
import { DecoderSession } from './decoder-session.js'
import { FolderSession } from './folder-session.js'
import { expectedContent } from './http-content.js'
import { LateSession } from './late-session.js'
import { PushSource } from './push-source.js'
import type { OpenSession } from './session.js'
import { SnapshotSession } from './snapshot-session.js'
import type { SourceDeps } from './source-deps.js'
import { checkTogether, isRefusal } from './source-errors.js'
import { SupervisedSource } from './supervised-source.js'

/**
 * The source for a camera, not yet started: RTSP, HTTP(S) (MJPEG, HLS, snapshots), a video file, a folder of pictures and videos, or pictures that are
 * pushed (`push:`, a {@link PushSource}).
 *
 * A URL that is refused does not throw: the source is `failed` and says why, as it would for a camera that cannot be opened.
 * A path that may not be read, or cannot be looked at for want of something, is tried again.
 */
export async function createSource(camera: CameraConfig, deps: SourceDeps): Promise<FrameSource> {
  if (!camera.enabled) return new IdleSource('disabled', 'switched off', deps)
  try {
    checkTogether(camera)
    const location = await validateCameraUrl(openedUrl(camera), deps)
    if (location.kind === 'push') return new PushSource(camera, deps)
    return new SupervisedSource(camera, deps, opening(camera, location, deps))
  } catch (error) {
    if (isRefusal(error)) return new IdleSource('failed', (error as Error).message, deps)
    return new SupervisedSource(camera, deps, lookingFirst(camera, deps))
  }
}

export function isPushSource(source: FrameSource): source is PushSource {
  return source instanceof PushSource
}

type PulledLocation = Exclude<CameraLocation, { kind: 'push' }>

function opening(camera: CameraConfig, location: PulledLocation, deps: SourceDeps): OpenSession {
  return location.kind === 'folder' ? folderWalk(camera, location, deps) : decoding(camera, location, deps)
}

/** For paths: the only locations that the system may keep from being checked. */
function lookingFirst(camera: CameraConfig, deps: SourceDeps): OpenSession {
  const find = async (): Promise<OpenSession> =>
    opening(camera, (await validateCameraUrl(openedUrl(camera), deps)) as PulledLocation, deps)
  return (listener) => new LateSession(find, listener)
}

function decoding(camera: CameraConfig, input: DecodedLocation, deps: SourceDeps): OpenSession {
  const decode = initialDecodeState(camera)
  const content = input.kind === 'http' ? expectedContent(input.url) : 'media'
  const memory: DecoderMemory = {
    ways: new DecodeWays(camera),
    repeated: new RepeatedLines(),
    content,
    decode,
    logins: {},
  }
  return (listener) =>
    input.kind === 'http' && memory.content === 'snapshot'
      ? new SnapshotSession({ camera, url: input.url, memory, deps }, listener)
      : new DecoderSession({ camera, input, memory, deps }, listener)
}

function folderWalk(
  camera: CameraConfig,
  { path, only }: Extract<CameraLocation, { kind: 'folder' }>,
  deps: SourceDeps,
): OpenSession {
  const once = { ...camera, loop: false }
  const openVideo = (video: string) => decoding(once, { kind: 'file', path: video }, deps)
  return (listener) => new FolderSession({ camera, path, only, deps, openVideo }, listener)
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
