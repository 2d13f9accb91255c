import { cameraUrlSettings, type CameraUrlSetting } from './camera-url-settings.js'
import { cameraUrlFault, schemeOf, type UrlFault } from './camera-url-syntax.js'

/** What is wrong with a setting of a camera that its schema cannot see. */
export type CameraFault = UrlFault & Readonly<{ setting: CameraUrlSetting | 'decode' }>

type Written = Readonly<Record<string, unknown>>

/**
 * What can be told of a camera as somebody wrote it, all of it or what is to be changed. What is missing or of another type is left to
 * the schema.
 */
export function cameraFaults(camera: unknown): CameraFault[] {
  if (typeof camera !== 'object' || camera === null) return []
  const written = camera as Written
  return [...cameraUrlSettings.flatMap((setting) => urlFault(setting, written)), ...settingFaults(camera)]
}

/** The same of settings that do not go together. */
export function settingFaults(camera: object): CameraFault[] {
  const { url, analyseUrl, decode } = camera as Written
  const faults: CameraFault[] = []
  if (isPush(analyseUrl))
    faults.push({ setting: 'analyseUrl', problem: 'is push:, which is no stream', fix: 'Name a stream.' })
  if (isPush(url) && typeof analyseUrl === 'string')
    faults.push({
      setting: 'analyseUrl',
      problem: 'stands beside pictures that are pushed, which have no other stream',
      fix: 'Leave it out, or name the main stream in url.',
    })
  if (isPush(url) && (decode === 'fast' || decode === 'keyframes'))
    faults.push({
      setting: 'decode',
      problem: `is ${decode}, and pictures that are pushed are no stream`,
      fix: 'Use full or auto, or leave it out.',
    })
  return faults
}

function urlFault(setting: CameraUrlSetting, { [setting]: url }: Written): CameraFault[] {
  const fault = typeof url === 'string' && url !== '' ? cameraUrlFault(url) : undefined
  return fault === undefined ? [] : [{ setting, ...fault }]
}

function isPush(url: unknown): boolean {
  return typeof url === 'string' && schemeOf(url) === 'push'
}
