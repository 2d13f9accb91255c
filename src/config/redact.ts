/** What a secret is replaced with. */
export const mask = '***'

/** Parts of names, in URLs, that hold a login or what stands for one; the only list of them. */
const loginWords = [
  ...[
    'user',
    'usr',
    'login',
    'pass',
    'pwd',
    'psw',
    'token',
    'key',
    'auth',
    'cred',
    'secret',
    'sig',
    'sign',
    'sess',
    'jwt',
  ],
  ...['otp', 'pin(?![a-z])', '(?<![a-z])sid(?![a-z])'],
].join('|')

/** Names of settings that are secret, whatever their section; what only says where a secret lies is not one. */
const secretSetting =
  /(?:pass(?:word|wd|phrase)?|pwd|psw|token|secret|credentials?|(?:api|access|private)key|(?<![a-z])sid|^headers)$/i

/** Parameters by which cameras take a login: `?user=admin&pwd=...`, `?u=admin&p=...`, `/user=admin_password=...`. */
const secretParameter = new RegExp(`([\\w.-]*(?:${loginWords})[\\w.-]*=|(?<=[?&;#])(?:u|p|pw)=)`, 'gi')

/** Those of them that hold a password alone. */
export const passwordParameter = /[?&]([a-z_-]*(pass|pwd|psw)[a-z_-]*|p|pw)=/i

/**
 * A URL without its user name and password, and without the values of parameters that hold them; text that is no URL comes back as it is,
 * with any `user:pass@` at its beginning masked.
 *
 * All of the text is taken for the URL, with white space, quotes and line ends.
 */
export function redactUrl(url: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? []
  if (scheme === undefined) return url.replace(/^(?!file:)[^/:]+:.*@/is, `${mask}@`)
  return maskedUrl(scheme, rest)
}

/**
 * Masks the credentials of every URL inside a text: decoder output, error messages, log lines.
 *
 * A password may itself hold `@`, `:` or `/` unescaped, as cameras' owners type them; so everything from `://` to the last `@` before
 * white space or a quote is taken as credentials. Cameras that take the login as parameters (`?user=admin&pwd=...`,
 * `/user=admin_password=...`) have the values of those masked. What follows a `#` is masked as a whole: it is sent to nobody, so that it is a
 * note of its owner or a part of a password.
 */
export function redactText(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)([^\s"'<>]*)/gi, (_, scheme: string, rest: string) =>
    maskedUrl(scheme, rest),
  )
}

function maskedUrl(scheme: string, rest: string): string {
  const host = isWithoutLogin(scheme, rest) ? rest : rest.replace(/^.*@/s, `${mask}@`)
  const parameters = host.replace(new RegExp(secretParameter.source + '[^&]+', 'gis'), `$1${mask}`)
  // A file may have one in its name.
  return scheme + (/^file:/i.test(scheme) ? parameters : parameters.replace(/#[^&]+/s, `#${mask}`))
}

/** The "@" of a file's name, or of a path behind a host that no login can begin with. */
function isWithoutLogin(scheme: string, rest: string): boolean {
  if (/^file:/i.test(scheme)) return true
  return /^([\w-]+|[\w-]+(\.[\w-]+)+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?)\/[^:#]*$/i.test(rest)
}

/** A copy of settings that can be shown: secrets by name, the user name beside a URL, and credentials inside URLs are masked. */
export function redactSettings(value: unknown): unknown {
  if (typeof value === 'string')
    return /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? redactUrl(value) : redactText(value)
  if (Array.isArray(value)) return value.map(redactSettings)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      isSecretSetting(key, 'url' in value) && item !== undefined ? mask : redactSettings(item),
    ]),
  )
}

/** Whether a value is never shown, for its name. @param besideUrl - the section is of something that is logged in to by URL. */
export function isSecretSetting(key: string, besideUrl = false): boolean {
  return secretSetting.test(key) || (besideUrl && key === 'username')
}

const loginKeys: ReadonlySet<string> = new Set([
  'username',
  'password',
  'url',
  'analyseUrl',
  'redis',
  'passphrase',
  'clientSecret',
  'sentinelPassword',
  'secret',
  'headers',
])

/** Whether a text is part of a login, or may hold one, by the name of its setting. */
export function isOfLogin(key: string): boolean {
  return loginKeys.has(key)
}
