import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { basename, dirname, extname, isAbsolute, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cameraUrlFault, schemeOf } from '../config/camera-url-syntax.js'
import { byTrueName } from '../lifecycle/system-limit.js'
import { AddressPolicy, plainHost } from '../lifecycle/address-policy.js'
import { mediaKind } from './media-names.js'
import { CameraUrlError } from './source-errors.js'

/** Where a camera's pictures come from, checked and in the form its source needs. */
export type CameraLocation =
  | Readonly<{ kind: 'rtsp'; url: string }>
  | Readonly<{ kind: 'http'; url: string }>
  | Readonly<{ kind: 'file'; path: string }>
  /** `only`: one picture of it. */
  | Readonly<{ kind: 'folder'; path: string; only?: string }>
  | Readonly<{ kind: 'push' }>

/** Containers and raw streams; no play lists, which name further files. */
const videoExtensions = new Set(
  '.mp4 .m4v .mov .mkv .webm .avi .ts .m2ts .mts .mpg .mpeg .flv .3gp .h264 .264 .h265 .265 .hevc .mjpeg .mjpg .gif'.split(
    ' ',
  ),
)

/**
 * Checks a camera's URL against the schemes Gantry opens, and a path against the media folder.
 *
 * @param settings.mediaRoot - absolute; relative paths start here, and nothing outside it is opened.
 * @param settings.addresses - asked about addresses only; names are looked up when the camera is opened.
 * @throws CameraUrlError `GANTRY_CAMERA_URL` naming the problem and the fix; SystemLimitError when a path may not, or cannot now, be
 *   looked at or read.
 */
export async function validateCameraUrl(
  url: string,
  settings: Readonly<{ mediaRoot: string; addresses?: AddressPolicy }>,
): Promise<CameraLocation> {
  const addresses = settings.addresses ?? new AddressPolicy()
  const fault = cameraUrlFault(url)
  if (fault) throw new CameraUrlError(url, fault.problem, fault.fix)
  switch (schemeOf(url)) {
    case 'push':
      return { kind: 'push' }
    case 'rtsp':
    case 'rtsps':
      return { kind: 'rtsp', url: networkUrl(url, addresses) }
    case 'http':
    case 'https':
      return { kind: 'http', url: networkUrl(url, addresses) }
    case 'file':
      return localMedia(url, filePath(url), settings.mediaRoot)
    default:
      return localMedia(url, url, settings.mediaRoot)
  }
}

/** In normal form: no fragment, and credentials encoded so that ffmpeg decodes what the owner meant. */
function networkUrl(url: string, addresses: AddressPolicy): string {
  const parsed = new URL(url)
  const host = plainHost(parsed.hostname)
  const refusal = isIP(host) === 0 ? undefined : addresses.refusal(host)
  if (refusal !== undefined)
    throw new CameraUrlError(
      url,
      `names ${host}, which ${refusal}`,
      'Use the address of the camera; one that is meant goes into cameraNetworks.allow of the pipeline file.',
    )
  const { username, password } = parsed
  const login = username + password === '' ? '' : `${reencoded(username)}:${reencoded(password)}@`
  return `${parsed.protocol}//${login}${parsed.host}${parsed.pathname}${parsed.search}`
}

/**
 * Everything but letters, digits and -._~ percent-encoded. Escapes are bytes, and need be no UTF-8; a "%" that begins none is taken as
 * typed.
 */
function reencoded(part: string): string {
  return part.replace(/%[0-9a-f]{2}|[^]/gi, (piece) =>
    piece.length === 3 ? piece.toUpperCase() : encodedCharacter(piece),
  )
}

function encodedCharacter(character: string): string {
  if (/[\w.~-]/.test(character)) return character
  return `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`
}

function filePath(url: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    throw new CameraUrlError(url, 'is not a local file', 'Write file:///folder/video.mp4 or just the path.')
  }
}

async function localMedia(url: string, path: string, mediaRoot: string): Promise<CameraLocation> {
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(path))
    throw new CameraUrlError(url, 'holds control characters', 'Remove them.')
  const root = await realpath(mediaRoot).catch(() => resolve(mediaRoot))
  const wanted = resolve(root, path)
  const [real, problem] = await realPath(wanted)
  if (!isInside(root, real ?? wanted)) {
    throw new CameraUrlError(url, 'lies outside the media folder', `Move it into ${root}, or set mediaRoot.`)
  }
  if (problem !== undefined) throw byTrueName('it cannot be looked at', problem)
  if (real === undefined)
    throw new CameraUrlError(url, 'does not exist', `Looked for ${wanted}; correct the path.`)
  const info = await stat(real)
  await mayRead(real, info.isDirectory() ? constants.R_OK | constants.X_OK : constants.R_OK)
  if (info.isDirectory()) return { kind: 'folder', path: real }
  if (!info.isFile())
    throw new CameraUrlError(url, 'is neither a file nor a folder', 'Name a video or a folder.')
  if (mediaKind(real) === 'picture') return { kind: 'folder', path: dirname(real), only: basename(real) }
  if (!videoExtensions.has(extname(real).toLowerCase())) {
    const known = [...videoExtensions].join(' ')
    throw new CameraUrlError(
      url,
      'does not look like a video or a picture',
      `Videos end in one of ${known}, pictures in .jpg .jpeg .png.`,
    )
  }
  return { kind: 'file', path: real }
}

/** The path without links, or what keeps it from being known but that nothing is there. */
async function realPath(path: string): Promise<readonly [string | undefined, Error | undefined]> {
  try {
    return [await realpath(path), undefined]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return [undefined, code === 'ENOENT' || code === 'ENOTDIR' ? undefined : (error as Error)]
  }
}

async function mayRead(path: string, rights: number): Promise<void> {
  try {
    await access(path, rights)
  } catch (error) {
    throw byTrueName('it cannot be read', error)
  }
}

function isInside(root: string, path: string): boolean {
  const below = relative(root, path)
  return below === '' || (!below.startsWith('..') && !isAbsolute(below))
}
