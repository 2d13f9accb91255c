import { cameraUrlFault, schemeOf, type UrlFault } from './camera-url-syntax.js'

/** What is wrong with a setting of a camera that its schema cannot see. */
export type CameraFault = UrlFault & Readonly<{ setting: 'url' | 'decode' }>

/**
 * What can be told of a camera as somebody wrote it, all of it or what is to be changed. What is missing or of another type is left to
 * the schema.
 */
export function cameraFaults(camera: unknown): CameraFault[] {
  if (typeof camera !== 'object' || camera === null) return []
  const { url, decode } = camera as Readonly<Record<string, unknown>>
  const faults = [urlFault('url', url)]
  if (isPush(url) && (decode === 'fast' || decode === 'keyframes'))
    faults.push({
      setting: 'decode',
      problem: `is ${decode}, and pictures that are pushed are no stream`,
      fix: 'Use full or auto, or leave it out.',
    })
  return faults.filter((fault) => fault !== undefined)
}

function urlFault(setting: 'url', url: unknown): CameraFault | undefined {
  const fault = typeof url === 'string' && url !== '' ? cameraUrlFault(url) : undefined
  return fault && { setting, ...fault }
}

function isPush(url: unknown): boolean {
  return typeof url === 'string' && schemeOf(url) === 'push'
}
