import { createHash } from 'node:crypto'

/** Name of these very bytes, for `ETag`. */
export function etagOf(bytes: Uint8Array): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`
}

/**
 * Whether who asks has it already (RFC 9110, 13.1.2).
 *
 * @param asked - `If-None-Match`. Proxies that compress make a name a weak one (`W/`), which counts as well.
 */
export function isKnown(etag: string, asked: string | undefined): boolean {
  if (asked === undefined) return false
  return asked.split(',').some((name) => {
    const trimmed = name.trim()
    return trimmed === '*' || trimmed.replace(/^W\//, '') === etag
  })
}
