import { mask } from '../config/redact.js'

/** The password of a URL in each form a program may print it. Short ones are left out: masking "a" would garble every line. */
export function secretsOf(url: string): readonly string[] {
  try {
    const { password } = new URL(url)
    return [...new Set([password, decodeURIComponent(password)])].filter((secret) => secret.length >= 4)
  } catch {
    return []
  }
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, mask), text)
}
