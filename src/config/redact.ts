/** What a secret is replaced with. */
export const mask = '***'

/** A URL without its user name and password; text that is no URL comes back as it is, with any `user:pass@` masked. */
export function redactUrl(url: string): string {
  return redactText(url)
}

/**
 * Masks the credentials of every URL inside a text: decoder output, error messages, log lines.
 *
 * A password may itself hold `@`, `:` or `/` unescaped, as cameras' owners type them; so everything from `://` to the last `@` before
 * white space or a quote is taken as credentials.
 */
export function redactText(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi, `$1${mask}@`)
}
