import type { CameraConfig } from './camera.js'

/** Settings that hold a URL of the camera, with its login: what holds for one of them holds for the other. */
export const cameraUrlSettings = ['url', 'analyseUrl'] as const
export type CameraUrlSetting = (typeof cameraUrlSettings)[number]

/** The stream that is analysed. */
export function analysedUrl({ url, analyseUrl }: Pick<CameraConfig, CameraUrlSetting>): string {
  return analyseUrl ?? url
}
