/** What a secret is replaced with. */
export const mask = '***'

/** Settings that are secret by their name alone. */
const secretKeys: ReadonlySet<string> = new Set(['token', 'password', 'secret'])

/** A URL without its user name and password; text that is no URL comes back as it is, with any `user:pass@` masked. */
export function redactUrl(url: string): string {
  return redactText(url)
}

/**
 * Masks the credentials of every URL inside a text: decoder output, error messages, log lines.
 *
 * A password may itself hold `@`, `:` or `/` unescaped, as cameras' owners type them; so everything from `://` to the last `@` before
 * white space or a quote is taken as credentials. Cameras that take the login as parameters (`?user=admin&pwd=...`,
 * `/user=admin_password=...`) have the values of those masked.
 */
export function redactText(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)([^\s"'<>]*)/gi, (_, scheme: string, rest: string) => {
    const host = rest.replace(/^.*@/s, `${mask}@`)
    return (
      scheme +
      host.replace(
        /([a-z_-]*(?:user|usr|login|pass|pwd|token|key|auth|secret|sign?)[a-z_-]*=)[^&#]+/gi,
        `$1${mask}`,
      )
    )
  })
}

/** A copy of settings that can be shown: secrets by name and credentials inside URLs are masked. */
export function redactSettings(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value)
  if (Array.isArray(value)) return value.map(redactSettings)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      secretKeys.has(key) && item !== undefined ? mask : redactSettings(item),
    ]),
  )
}
