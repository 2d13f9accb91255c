import { settingFaults, type CameraFault } from '../config/camera-setting-faults.js'
import type { CameraConfig } from '../config/camera.js'
import type { CameraUrlSetting } from '../config/camera-url-settings.js'
import { redactUrl } from '../config/redact.js'
import { GantryError } from '../errors.js'

/** A camera URL that will not be opened. The message holds no credentials. */
export class CameraUrlError extends GantryError {
  readonly code = 'GANTRY_CAMERA_URL'
  /** Which of them, where a camera has several. */
  override field: CameraUrlSetting = 'url'
  constructor(
    url: string,
    problem: string,
    readonly hint: string,
  ) {
    super(`camera URL "${printable(redactUrl(url))}" ${problem}`)
    this.name = 'CameraUrlError'
  }
}

/** Settings of a camera that do not go together. */
export class CameraSettingError extends GantryError {
  readonly code = 'GANTRY_CAMERA_SETTING'
  readonly hint: string
  override readonly field: string
  constructor({ setting, problem, fix }: CameraFault) {
    super(`${setting} ${problem}`)
    this.name = 'CameraSettingError'
    this.hint = fix
    this.field = setting
  }
}

/** What is wrong with a URL by itself is told by whoever looks where it leads. @throws CameraSettingError */
export function checkTogether(camera: CameraConfig): void {
  const [fault] = settingFaults(camera)
  if (fault !== undefined) throw new CameraSettingError(fault)
}

/** Whether a camera is refused for what it is set to, unlike for what the system says of a path, which may be another thing later. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof GantryError) return !error.retryable
  return !/^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')
}

/** A pushed or stored picture that cannot be analysed. */
export class ImageInvalidError extends GantryError {
  readonly code = 'GANTRY_IMAGE_INVALID'
  readonly hint = 'Send one complete JPEG or PNG picture.'
  constructor(problem: string, cause?: unknown) {
    super(`picture cannot be used: ${problem}`, { cause })
    this.name = 'ImageInvalidError'
  }
}

/** A picture with more pixels than Gantry decodes, whatever its file size. */
export class ImageTooLargeError extends GantryError {
  readonly code = 'GANTRY_TOO_LARGE'
  readonly hint = 'Scale the picture down to at most 8192 x 8192 pixels.'
  constructor(problem: string) {
    super(`picture is too large: ${problem}`)
    this.name = 'ImageTooLargeError'
  }
}

/** Control characters shown as escapes, and no more than a line of it. */
function printable(text: string): string {
  const shown = text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (c) => `\\u${(c.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
  return shown.length > 200 ? `${shown.slice(0, 200)}...` : shown
}
