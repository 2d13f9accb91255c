/** What the form holds, all as text as typed. */
export type FormValues = Readonly<Record<string, string | boolean>>

export const emptyForm: FormValues = {
  id: '',
  name: '',
  url: '',
  sampleFps: '5',
  transport: 'tcp',
  hwaccel: 'none',
  maxWidthPx: '',
  stallTimeoutMs: '',
  'region.x': '',
  'region.y': '',
  'region.width': '',
  'region.height': '',
  loop: true,
  enabled: true,
  persist: true,
}

const numbers = new Set(['sampleFps', 'maxWidthPx', 'stallTimeoutMs'])

/**
 * Body of `POST /api/v1/cameras`. Fields left empty are left out, so that the server's defaults hold. What is no number goes as
 * typed: the server says what is wrong with it, at the same place as everything else.
 */
export function newCamera(values: FormValues): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const region: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const given = typeof value === 'string' ? value.trim() : value
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

/** An id made of the last parts of a URL, as long as nobody typed one. */
export function suggestId(url: string): string {
  const plain = url.replace(/^[a-z]+:\/\/([^/]*@)?/i, '').replace(/[?#].*$/, '')
  const words = plain
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '' && !/^(stream|live|h264|mp4|video)$/i.test(word))
  return words.slice(-2).join('-').slice(0, 64)
}
