import { z } from 'zod'
import { rawLogin } from './url-login.js'

/** A server of Redis, with its login and the number of a database. */
export function redisUrlSchema() {
  return z
    .string()
    .superRefine((url, context) => {
      const message = redisUrlFault(url)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .meta({ format: 'uri' })
}

/** Shows nothing of the login. */
function redisUrlFault(url: string): string | undefined {
  const raw = rawLogin(url, false)
  if (raw !== undefined)
    return `has a login that is not escaped and would be cut in the wrong place; write ${raw.escapes} in it: ${raw.meant}`
  if (!/^rediss?:\/\//i.test(url) || !URL.canParse(url)) return 'must be a redis:// or rediss:// URL'
  if (/[\p{Cc}\s]/u.test(url)) return 'holds white space; in a login a space is %20'
  const { username, password } = new URL(url)
  return isEscaped(username + password)
    ? undefined
    : 'has a "%" in its login that begins no escape of UTF-8; write % as %25'
}

function isEscaped(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
