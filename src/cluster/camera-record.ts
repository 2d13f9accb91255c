import { isDeepStrictEqual } from 'node:util'
import { cameraIdSchema, cameraSchema, type CameraConfig } from '../config/camera.js'
import { complaintsOf } from '../config/schema-problem.js'
import { formatPath } from '../config/setting-path.js'
import { textOfBytes } from '../config/text-file.js'
import { type CameraMessage, cameraMessageSchema, cameraMessageVersion } from '../messages/camera-message.js'

/** What a record of the topic of cameras says. */
export type CameraRecord =
  | Readonly<{ kind: 'camera'; config: CameraConfig }>
  | Readonly<{ kind: 'removed' }>
  /** Written by a newer version of the service: left as it is. */
  | Readonly<{ kind: 'newer'; version: number }>
  | Readonly<{ kind: 'invalid'; reason: string }>

/** @param value - of the record; `null` for a tombstone. */
export function parseCameraRecord(id: string, value: Uint8Array | null): CameraRecord {
  if (value === null) return { kind: 'removed' }
  const ofId = cameraIdSchema.safeParse(id)
  if (!ofId.success) return invalid(`the key of the record ${ofId.error.issues[0]?.message}`)
  let json: unknown
  try {
    json = JSON.parse(textOfBytes(value))
  } catch (error) {
    return invalid(`the value is no JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  const version = typeof json === 'object' && json !== null && 'version' in json ? json.version : undefined
  if (typeof version === 'number' && version > cameraMessageVersion) return { kind: 'newer', version }
  const parsed = cameraMessageSchema.safeParse(json)
  if (!parsed.success) {
    const complaints = parsed.error.issues.flatMap((issue) => complaintsOf(issue, cameraMessageSchema, json))
    return invalid(complaints.map(wordsOf).join('; '))
  }
  const { camera } = parsed.data
  if (camera.id !== undefined && camera.id !== id)
    return invalid('camera.id is another one than the key of the record: leave it out')
  return { kind: 'camera', config: { ...camera, id } }
}

/**
 * Settings that are as they are by default are left out: a node of an earlier version, which does not know a setting, can follow the cameras that do
 * without it.
 */
export function cameraRecordValue(config: CameraConfig): string {
  const { id, url } = config
  const usual: Readonly<Record<string, unknown>> = cameraSchema.parse({ id, url })
  const written = Object.entries(config).filter(([name, value]) => !isDeepStrictEqual(value, usual[name]))
  const camera = { id, url, ...(Object.fromEntries(written) as Partial<CameraConfig>) }
  return JSON.stringify({ version: cameraMessageVersion, camera } satisfies CameraMessage)
}

function invalid(reason: string): CameraRecord {
  return { kind: 'invalid', reason }
}

function wordsOf({ path, message, hint }: ReturnType<typeof complaintsOf>[number]): string {
  const about = path.length === 0 ? message : `${formatPath(path)}: ${message}`
  return hint === undefined ? about : `${about} (${hint})`
}
