import type { CameraConfig } from './camera.js'
import { withLogin } from './url-login.js'

/** Settings that hold a URL of the camera, with or without its login: what holds for one of them holds for the other. */
export const cameraUrlSettings = ['url', 'analyseUrl'] as const
export type CameraUrlSetting = (typeof cameraUrlSettings)[number]

/** Settings that hold its login beside them. */
export const cameraLoginSettings = ['username', 'password'] as const
export type CameraLoginSetting = (typeof cameraLoginSettings)[number]

/** Schemes of URLs that a login can stand in. */
export const loginSchemes: ReadonlySet<string> = new Set(['rtsp', 'rtsps', 'http', 'https'])

/** The stream that is analysed, as it is written. */
export function analysedUrl({ url, analyseUrl }: Pick<CameraConfig, CameraUrlSetting>): string {
  return analyseUrl ?? url
}

/** A URL of the camera as it is opened: with the login that stands beside it. Secret. */
export function openedUrl(
  camera: Pick<CameraConfig, CameraUrlSetting | CameraLoginSetting>,
  url: string = analysedUrl(camera),
): string {
  const { username = '', password = '' } = camera
  return username + password === '' ? url : withLogin(url, username, password)
}
