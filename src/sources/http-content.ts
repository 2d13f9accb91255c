import { extname } from 'node:path'
import { headerIn, type HttpHead } from './http-head.js'
import { pictureKindOf } from './picture-end.js'

/**
 * What an HTTP camera's URL leads to.
 *
 * - `snapshot`: one picture for each request
 * - `pictures`: an endless answer of single pictures (MJPEG)
 * - `list`: an HLS play list
 * - `media`: anything else, which is for the decoder to tell
 */
export type HttpContent = 'snapshot' | 'pictures' | 'list' | 'media'

/** Why a session begins anew, once it is known. */
export const contentReasons: Readonly<Record<HttpContent, string>> = {
  snapshot: 'it sends pictures: looking at how many',
  pictures: 'it sends pictures one after the other: reading them as they come',
  list: 'it is a play list: reading it piece by piece',
  media: 'it is a video: decoding it',
}

/** So many bytes tell what it is. */
export const contentStartBytes = 64

const containers = /^\.(mp4|m4v|mov|mkv|webm|avi|ts|m2ts|mts|mpe?g|flv|3gp|h?26[45]|hevc|ogg|ogv)$/i
const ofPictures = /^\s*(image\/|video\/(x-)?(motion-)?m?jpe?g)/i

/** What to take a URL for before it has answered; `snapshot` where its end does not tell, since whoever asks for one sees what it is. */
export function expectedContent(url: string): HttpContent {
  const end = extname(new URL(url).pathname)
  if (/^\.m3u8?$/i.test(end)) return 'list'
  return containers.test(end) ? 'media' : 'snapshot'
}

/**
 * What an answer is, from its head and its first bytes, of which more are trusted than of what is said about them. `snapshot` where
 * it begins with a picture: whether more of them come is seen behind that.
 *
 * @returns `words` for text where a camera has pictures: a page with an error or a form for a login.
 */
export function contentOf(head: HttpHead, start: Buffer): HttpContent | 'words' {
  const type = headerIn(head, 'content-type') ?? ''
  const text = start.toString('latin1', 0, contentStartBytes)
  if (/mpegurl/i.test(type) || /^\s*#EXTM3U/.test(text)) return 'list'
  if (/^\s*multipart\//i.test(type)) return 'pictures'
  if (pictureKindOf(start) !== undefined) return 'snapshot'
  if (/^\s*--\S[^\r\n]*\r?\n/.test(text)) return 'pictures'
  if (/^[\t\r\n\x20-\x7e\x80-\xff]{8,}$/.test(text)) return 'words'
  return ofPictures.test(type) || text === '' ? 'snapshot' : 'media'
}

/** Whether it is said to be one picture of a known length. */
export function isOnePicture(head: HttpHead, lengthBytes: number | undefined): boolean {
  return lengthBytes !== undefined && /^\s*image\//i.test(headerIn(head, 'content-type') ?? '')
}

/** As people are told what came in place of pictures. */
export function typeText(head: HttpHead): string {
  const [type = ''] = (headerIn(head, 'content-type') ?? '').split(';')
  return type.trim() === '' ? 'something without a type' : type.trim()
}
