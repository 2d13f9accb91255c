import { mask, passwordParameter, redactUrl } from './redact.js'
import { rawLogin } from './url-login.js'

/** Why a text cannot be a camera's URL, and what to write instead. Shows nothing of its login. */
export type UrlFault = Readonly<{ problem: string; fix: string }>

const schemes = ['rtsp', 'rtsps', 'http', 'https', 'file', 'push']
const schemeFix = `Use one of ${schemes.map((scheme) => `${scheme}:`).join(' ')} or the path of a video or folder.`

/** `192.0.2.10/path`, `host:554/path` or `name:password@host`: a camera in the network whose scheme was forgotten. */
const bareAddress =
  /^(\d{1,3}(\.\d{1,3}){3}(:\d+)?(\/|$)|[\w.-]+:\d+(\/|$)|(?!(file|push):)[^/:]+:(?!\/\/).*@)/is

/** In lower case and without its colon; undefined for a path. */
export function schemeOf(url: string): string | undefined {
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase()
}

/** What can be told of a camera's URL from its text alone; addresses and files are looked at when it is opened. */
export function cameraUrlFault(url: string): UrlFault | undefined {
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(url)) return fault('holds control characters', 'Remove them.')
  if (url.trim() === '') return fault('is empty', schemeFix)
  if (url !== url.trim()) return fault('begins or ends with white space', 'Remove it.')
  if (url.startsWith('-')) return fault('begins with "-"', 'Write the path as ./-name.')
  if (bareAddress.test(url)) return fault('names no scheme', 'Write rtsp://host:port/path.')
  const scheme = schemeOf(url)
  if (scheme === undefined || scheme === 'file') return undefined
  if (!schemes.includes(scheme)) return fault(`has the scheme "${scheme}:", which is not opened`, schemeFix)
  if (scheme !== 'push') return networkFault(url)
  return url.toLowerCase() === 'push:' ? undefined : fault('says more than "push:"', 'Write just push:')
}

function networkFault(url: string): UrlFault | undefined {
  const raw = rawLogin(url)
  if (raw !== undefined)
    return fault(
      'has a login that is not escaped and would be cut in the wrong place',
      `Write ${raw.escapes} in user name and password: ${raw.meant}, or set username and password beside the URL. An @ of the path is %40 as well.`,
    )
  if (!URL.canParse(url))
    return fault('is not a URL', 'Write it like rtsp://host:554/path, an IPv6 address in [ ].')
  const { hostname, port, username, search, hash } = new URL(url)
  if (/\s/.test(url)) return fault('holds white space', 'Write a space as %20.')
  if (url.includes('\\')) return fault('holds a backslash', 'Write it as %5C.')
  if (!/^[a-z]+:\/\//i.test(url) || hostname === '')
    return fault('names no host', 'Write rtsp://host:port/path.')
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9_.~-]*[a-z0-9][a-z0-9_.~-]*)$/i.test(hostname))
    return fault('names an impossible host', 'Write its name or IP address.')
  if (port === '0') return fault('has port 0', 'Name the port the camera listens on.')
  if (username === mask || isMasked(search))
    return fault(
      `has ${mask} in place of its login`,
      'Write the login itself, or set username and password beside the URL.',
    )
  if (hash !== '' && passwordParameter.test(search))
    return fault(
      'has "#" behind a password',
      'Write it as %23 where it belongs to the password, or leave it out.',
    )
  return undefined
}

/** A view of a camera that was sent back to make another one of it. */
function isMasked(search: string): boolean {
  return search.includes(`=${mask}`) && redactUrl(`x://h/${search}`) === `x://h/${search}`
}

function fault(problem: string, fix: string): UrlFault {
  return { problem, fix }
}
