import type { Content } from './gate-names.js'

/** Why a play list is not played; the message is a clause for people. */
export class PlayListError extends Error {}

/** Gives a URL the form in which the decoder may ask for it. */
export type Naming = (content: Content, url: URL) => string

const number = String.raw`\d+(?:\.\d+)?`

/** Tags without an address, as ffmpeg reads them; of each line what matches is kept. */
const plainTags = [
  /^#EXT-X-(VERSION|MEDIA-SEQUENCE|DISCONTINUITY-SEQUENCE):\s*\d+/,
  new RegExp(`^#EXT-X-TARGETDURATION:\\s*${number}`),
  /^#EXT-X-PLAYLIST-TYPE:\s*(EVENT|VOD)/,
  /^#EXT-X-(ENDLIST|DISCONTINUITY|INDEPENDENT-SEGMENTS|I-FRAMES-ONLY)$/,
  /^#EXT-X-BYTERANGE:\s*\d+(@\d+)?/,
  /^#EXT-X-PROGRAM-DATE-TIME:\s*[\w:.+-]+/,
  new RegExp(`^#EXT-X-START:\\s*TIME-OFFSET=-?${number}(,\\s*PRECISE=(YES|NO))?`),
]
const piece = new RegExp(`^#EXTINF:\\s*${number}`)

type Attributes = ReadonlyMap<string, string>

/**
 * A play list (RFC 8216) as ffmpeg may have it: written anew from what was understood of it, so that it names no address but in the form
 * that `name` gives it. Sound and subtitles, which nobody looks at, are left out.
 *
 * @param base - where it was fetched, with the login for what lies beside it.
 * @throws PlayListError for what is no play list, and for one that names what is not fetched by HTTP.
 */
export function rewritePlayList(text: string, base: URL, name: Naming): string {
  const [first, ...lines] = text.split(/\r\n|[\r\n\0]/)
  if (first?.trimEnd() !== '#EXTM3U') throw new PlayListError('the play list cannot be read')
  const resolved = (content: Content, reference: string) => name(content, webUrl(reference, base))
  const written = ['#EXTM3U']
  let next: Content | undefined
  for (const raw of lines) {
    const line = raw.trim()
    if (line === '') continue
    if (!line.startsWith('#')) {
      if (next !== undefined) written.push(resolved(next, line))
      next = undefined
      continue
    }
    if (line.startsWith('#EXT-X-STREAM-INF:')) next = 'list'
    else if (piece.test(line)) next ??= 'media'
    written.push(...tagOf(line, resolved))
  }
  return `${written.join('\n')}\n`
}

function tagOf(line: string, resolved: (content: Content, reference: string) => string): string[] {
  const duration = piece.exec(line)
  if (duration !== null) return [`${duration[0]},`]
  const [, tag = '', rest = ''] = /^#(EXT-X-(?:KEY|MAP|MEDIA|STREAM-INF)):(.*)$/.exec(line) ?? []
  const given = attributesOf(rest)
  switch (tag) {
    case 'EXT-X-KEY':
      return [
        `#${tag}:${attributes(given, { METHOD: /^[A-Z0-9-]+$/, IV: /^0[xX][0-9A-Fa-f]+$/ }, uri('media'))}`,
      ]
    case 'EXT-X-MAP':
      return [`#${tag}:${attributes(given, {}, [...uri('media'), ...quoted('BYTERANGE', /^\d+(@\d+)?$/)])}`]
    case 'EXT-X-STREAM-INF':
      return [`#${tag}:${attributes(given, { BANDWIDTH: /^\d+$/ }, quoted('VIDEO', plainText))}`]
    case 'EXT-X-MEDIA':
      if (given.get('TYPE') !== 'VIDEO') return []
      return [
        `#${tag}:${attributes(given, { TYPE: /^VIDEO$/ }, [
          ...quoted('GROUP-ID', plainText),
          ...quoted('NAME', plainText),
          ...uri('list'),
        ])}`,
      ]
    default:
      return plainTags.flatMap((pattern) => pattern.exec(line)?.[0] ?? [])
  }

  function uri(content: Content): string[] {
    const reference = given.get('URI')
    return reference === undefined ? [] : [`URI="${resolved(content, reference)}"`]
  }

  function quoted(key: string, pattern: RegExp): string[] {
    const value = given.get(key) ?? ''
    return pattern.test(value) ? [`${key}="${value}"`] : []
  }
}

const plainText = /^[\w .-]+$/

function attributes(
  given: Attributes,
  words: Readonly<Record<string, RegExp>>,
  others: readonly string[],
): string {
  const kept = Object.entries(words).flatMap(([key, pattern]) => {
    const value = given.get(key) ?? ''
    return pattern.test(value) ? [`${key}=${value}`] : []
  })
  return [...kept, ...others].join(',')
}

function attributesOf(text: string): Attributes {
  return new Map(
    [...text.matchAll(/([A-Z0-9-]+)\s*=\s*(?:"([^"]*)"|([^",\s]*))/gi)].map(([, key = '', inner, word]) => [
      key.toUpperCase(),
      inner ?? word ?? '',
    ]),
  )
}

function webUrl(reference: string, base: URL): URL {
  if (!URL.canParse(reference, base.href))
    throw new PlayListError('the play list names an address that is none')
  const url = new URL(reference, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new PlayListError('the stream refers to a protocol that is not allowed')
  return url
}
