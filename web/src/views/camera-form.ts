/** What the form holds, all as text as typed. */
export type FormValues = Readonly<Record<string, string | boolean>>

export const emptyForm: FormValues = {
  id: '',
  name: '',
  url: '',
  analyseUrl: '',
  username: '',
  password: '',
  sampleFps: '5',
  transport: 'tcp',
  decode: 'full',
  hwaccel: 'none',
  maxWidthPx: '',
  displayAspectRatio: '',
  sampleAspectRatio: '',
  stallTimeoutMs: '',
  'region.x': '',
  'region.y': '',
  'region.width': '',
  'region.height': '',
  loop: true,
  enabled: true,
  persist: true,
}

/** White space at an end of them may be meant. */
const asTyped = new Set(['username', 'password'])
const numbers = new Set(['sampleFps', 'maxWidthPx', 'stallTimeoutMs'])

/**
 * Body of `POST /api/v1/cameras`. Fields left empty are left out, so that the server's defaults hold. What is no number goes as
 * typed: the server says what is wrong with it, at the same place as everything else.
 */
export function newCamera(values: FormValues): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const region: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const given = typeof value === 'string' && !asTyped.has(key) ? value.trim() : value
    if (given === '') continue
    if (key.startsWith('region.')) region[key.slice('region.'.length)] = numberOrText(given)
    else body[key] = numbers.has(key) ? numberOrText(given) : given
  }
  return Object.keys(region).length === 0 ? body : { ...body, region }
}

function numberOrText(given: string | boolean): unknown {
  const number = typeof given === 'string' ? Number(given.replace(',', '.')) : Number.NaN
  return Number.isFinite(number) ? number : given
}

/**
 * An id made of the path of a URL, or of its host, as long as nobody typed one. A login may hold any character, also those that end a host:
 * nothing before an "@" is taken.
 */
export function suggestId(url: string): string {
  const [, host, path] = /^[a-z]+:\/\/(?:.*@)?([^/:?#]*)[^/]*(.*)$/i.exec(url) ?? ['', '', url]
  const chosen = wordsOf(path ?? '').slice(-2)
  return (chosen.length > 0 ? chosen : wordsOf(host ?? '')).join('-').slice(0, 64)
}

const tellsNothing = /^(stream|live|video|media|h26[45]|mp4|mkv|m3u8|push)$/i

function wordsOf(text: string): string[] {
  const plain = text.replace(/[?#].*$/, '')
  return plain.split(/[^A-Za-z0-9]+/).filter((word) => word !== '' && !tellsNothing.test(word))
}
