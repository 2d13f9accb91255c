import { GantryError } from '../errors.js'

export class CameraNotFoundError extends GantryError {
  readonly code = 'GANTRY_CAMERA_NOT_FOUND'
  readonly hint = 'GET /api/v1/cameras lists the cameras there are.'
  constructor(readonly cameraId: string) {
    super(`there is no camera "${cameraId}"`)
    this.name = 'CameraNotFoundError'
  }
}

export class CameraExistsError extends GantryError {
  readonly code = 'GANTRY_CAMERA_EXISTS'
  readonly hint = 'Choose another id, or change the camera with PATCH /api/v1/cameras/{id}.'
  constructor(readonly cameraId: string) {
    super(`camera "${cameraId}" exists already`)
    this.name = 'CameraExistsError'
  }
}

/** There is no room for another camera, and `admission` is `refuse`. */
export class AdmissionRefusedError extends GantryError {
  readonly code = 'GANTRY_NO_ROOM'
  readonly hint =
    'Lower sampleFps or the number of cameras, see /api/v1/headroom for the arithmetic, or set admission to warn or off.'
  constructor(
    readonly cameraId: string,
    reason: string,
  ) {
    super(`there is no room for camera "${cameraId}": ${reason}`)
    this.name = 'AdmissionRefusedError'
  }
}

export class CameraNotPushError extends GantryError {
  readonly code = 'GANTRY_CAMERA_NOT_PUSH'
  readonly hint = 'Only a camera with the URL "push:" takes pictures; this one fetches its own.'
  constructor(readonly cameraId: string) {
    super(`camera "${cameraId}" does not take pushed pictures`)
    this.name = 'CameraNotPushError'
  }
}

export class NotFoundError extends GantryError {
  readonly code = 'GANTRY_NOT_FOUND'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'NotFoundError'
  }
}

export class EngineUnavailableError extends GantryError {
  readonly code = 'GANTRY_ENGINE_UNAVAILABLE'
  readonly hint = 'The engine is being restarted; try again in a few seconds and see /readyz.'
  override readonly retryable = true
  constructor(reason: string) {
    super(`engine is not available: ${reason}`)
    this.name = 'EngineUnavailableError'
  }
}

/** A camera for a service that is a model server alone. */
export class NoEnginesError extends GantryError {
  readonly code = 'GANTRY_ENGINE_UNAVAILABLE'
  readonly hint = 'Set engines to 1 or more in the pipeline file, and ensemble to a detector.'
  constructor() {
    super('this service takes no cameras: it was started with engines: 0')
    this.name = 'NoEnginesError'
  }
}

/** The cameras' ensemble cannot be changed now. */
export class EnsembleBusyError extends GantryError {
  readonly code = 'GANTRY_ENSEMBLE_BUSY'
  constructor(
    reason: string,
    readonly hint = 'GET /api/v1/ensemble tells how the change goes; ask again when its state is "steady".',
  ) {
    super(`the ensemble of the cameras cannot be changed: ${reason}`)
    this.name = 'EnsembleBusyError'
  }
}
