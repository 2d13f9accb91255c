import type { Camera } from '../api/types.js'
import { emptyForm, newCamera, type FormValues } from './camera-form.js'

/** Settings whose change is taken without opening the camera anew; the others cost its picture for a moment. */
const needNoReconnect: ReadonlySet<string> = new Set(['persist'])
/** Those that may be taken away. */
const optional = new Set([
  'name',
  'analyseUrl',
  'maxWidthPx',
  'displayAspectRatio',
  'sampleAspectRatio',
  'stallTimeoutMs',
])
/** What is shown of a login is a mask, so that it stands empty in the form: that leaves it as it is. */
const secret = new Set(['username', 'password'])

/** The form of a camera as it is. */
export function formOf({ config, persist }: Camera): FormValues {
  const { region, staticScene, ...settings } = config
  const values: Record<string, string | boolean> = { ...emptyForm, staticScene: staticScene !== undefined }
  for (const [key, value] of Object.entries(settings))
    if (!secret.has(key) && key in emptyForm) values[key] = typeof value === 'boolean' ? value : String(value)
  for (const [side, share] of Object.entries(region ?? {})) values[`region.${side}`] = String(share)
  return { ...values, persist, removeLogin: false, username: '', password: '' }
}

/** Body of `PATCH`: what differs between two forms and nothing else; `null` takes a setting away. */
export function changesBetween(before: FormValues, after: FormValues): Record<string, unknown> {
  const plain = (values: FormValues) => {
    const { id: _, staticScene, removeLogin, ...rest } = values
    return { body: newCamera(rest), staticScene, removeLogin }
  }
  const [from, to] = [plain(before), plain(after)]
  const changes: Record<string, unknown> = {}
  for (const key of new Set([...Object.keys(from.body), ...Object.keys(to.body)])) {
    if (JSON.stringify(from.body[key]) === JSON.stringify(to.body[key])) continue
    changes[key] = to.body[key] ?? (optional.has(key) || key === 'region' ? null : '')
  }
  if (from.staticScene !== to.staticScene) changes['staticScene'] = to.staticScene === true ? {} : null
  if (to.removeLogin === true) Object.assign(changes, { username: null, password: null })
  return changes
}

/** What a change costs, for people. */
export function costOf(changes: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(changes)
  if (names.length === 0) return 'Nothing is changed yet.'
  if (names.every((name) => needNoReconnect.has(name))) return 'The camera stays connected.'
  return 'The camera is connected anew: a second or two without pictures. Others are not touched.'
}
