import { mask } from '../config/redact.js'

/** The password of a URL in each form a program may print it. Short ones are left out: masking "a" would garble every line. */
export function secretsOf(url: string): readonly string[] {
  if (!URL.canParse(url)) return []
  const { password } = new URL(url)
  const bytes = Buffer.from(
    password.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => latin1(hex)),
    'latin1',
  )
  const forms = [password, bytes.toString('utf8'), bytes.toString('latin1')]
  return [...new Set(forms)].filter((secret) => secret.length >= 4)
}

function latin1(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, mask), text)
}
