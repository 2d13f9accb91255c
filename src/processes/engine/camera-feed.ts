import type { CameraStatus } from '../../vision/camera-state.js'
import type { FrameSource } from '../../vision/frame-source.js'
import type { EngineModel } from './engine-model.js'

/** A source of a camera, and the model that its frames are for. */
export class CameraFeed {
  source: FrameSource | undefined
  /** Whether it is the camera's; else it is to take the place of another with its first frame, and nobody is told of it. */
  isIn = false
  /** What it told last. */
  told: CameraStatus | undefined
  /** Called before its first frame is told. */
  onFirst: (() => void) | undefined
  onTold: ((status: CameraStatus) => void) | undefined

  constructor(public model: EngineModel) {}
}
