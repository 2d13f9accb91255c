import {
  cameraLoginSettings,
  cameraUrlSettings,
  loginSchemes,
  type CameraLoginSetting,
  type CameraUrlSetting,
} from './camera-url-settings.js'
import { cameraUrlFault, schemeOf, type UrlFault } from './camera-url-syntax.js'
import { mask } from './redact.js'
import { holdsLogin } from './url-login.js'

/** What is wrong with a setting of a camera that its schema cannot see. */
export type CameraFault = UrlFault &
  Readonly<{ setting: CameraUrlSetting | CameraLoginSetting | 'decode' | 'videoTrack' | 'sampleAspectRatio' }>

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
  const { url, analyseUrl, decode, videoTrack, displayAspectRatio, sampleAspectRatio } = camera as Written
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
  if (isPush(url) && typeof videoTrack === 'number' && videoTrack > 1)
    faults.push({
      setting: 'videoTrack',
      problem: `is ${videoTrack}, and pictures that are pushed are one after another`,
      fix: 'Leave it out.',
    })
  if (typeof displayAspectRatio === 'string' && typeof sampleAspectRatio === 'string')
    faults.push({
      setting: 'sampleAspectRatio',
      problem: 'stands beside displayAspectRatio, which says the same in another way',
      fix: 'Leave one of them out.',
    })
  return [...faults, ...loginFaults(camera as Written)]
}

function loginFaults(camera: Written): CameraFault[] {
  const given = cameraLoginSettings.filter((setting) => typeof camera[setting] === 'string')
  const [first] = given
  if (first === undefined) return []
  const masked = given.filter((setting) => camera[setting] === mask)
  if (masked.length > 0)
    return masked.map((setting) => ({
      setting,
      problem: `is ${mask}, which is shown in place of what it was`,
      fix: 'Write what it is.',
    }))
  const urls = cameraUrlSettings.filter((setting) => typeof camera[setting] === 'string')
  const double = urls.find((setting) => holdsLogin(camera[setting] as string))
  if (double !== undefined)
    return [
      {
        setting: first,
        problem: `stands beside ${double}, which holds a login too`,
        fix: `Keep one of them: username and password, or the login in ${double}.`,
      },
    ]
  const takesLogin = (setting: CameraUrlSetting) =>
    loginSchemes.has(schemeOf(camera[setting] as string) ?? '')
  if (urls.length > 0 && !urls.some(takesLogin))
    return [
      { setting: first, problem: `stands beside a ${urls[0]} that takes no login`, fix: 'Leave it out.' },
    ]
  // A change need not name what stays.
  const isMissing = (setting: CameraLoginSetting) => camera[setting] === undefined || camera[setting] === null
  if (!('id' in camera) || !cameraLoginSettings.some(isMissing)) return []
  return first === 'username'
    ? [
        {
          setting: 'password',
          problem: 'is missing beside username',
          fix: 'Give it too; where the account has none write password: "".',
        },
      ]
    : [
        {
          setting: 'username',
          problem: 'is missing beside password',
          fix: 'Name the account, such as admin.',
        },
      ]
}

function urlFault(setting: CameraUrlSetting, { [setting]: url }: Written): CameraFault[] {
  const fault = typeof url === 'string' && url !== '' ? cameraUrlFault(url) : undefined
  return fault === undefined ? [] : [{ setting, ...fault }]
}

function isPush(url: unknown): boolean {
  return typeof url === 'string' && schemeOf(url) === 'push'
}
