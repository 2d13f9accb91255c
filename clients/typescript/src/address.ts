import { GantryClientError, optionError } from './client-error.js'

export type Token = string | undefined | (() => string | undefined)

/** Where a service is, and what it wants to be shown. */
export type Address = Readonly<{
  /** Of the service, such as `http://127.0.0.1:8000`; with the path under which a reverse proxy has it, if any. */
  url: string | Readonly<{ href: string }>
  /** Of `server.token`. A function is asked anew for every connection. */
  token?: Token
}>

const streamPath = 'api/v1/stream'

/** @returns URL of the service, with `http` and `/` at its end. @throws GantryClientError for what is no such URL. */
export function baseOf({ url }: Address): string {
  const text = typeof url === 'string' ? url : url.href
  if (!URL.canParse(text))
    throw optionError(
      `url: "${text}" is no URL`,
      'Give the address of the service, such as http://127.0.0.1:8000.',
    )
  const base = new URL(text)
  base.protocol = base.protocol.replace(/^ws/, 'http')
  if (!/^https?:$/.test(base.protocol))
    throw optionError(`url: the scheme of "${text}" is not http or https`, 'Such as http://127.0.0.1:8000.')
  if (base.username !== '' || base.password !== '')
    throw optionError('url: it has a login', 'Leave it out, and give the token of the service as `token`.')
  base.hash = base.search = ''
  if (base.pathname.endsWith(`/${streamPath}`)) base.pathname = base.pathname.slice(0, -streamPath.length)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base.href
}

export function streamUrl(base: string): string {
  return new URL(streamPath, base).href.replace(/^http/, 'ws')
}

/** @throws GantryClientError, which may go away by itself, when the function of the token fails */
export function tokenOf({ token }: Address): string | undefined {
  const given = typeof token === 'function' ? asked(token) : token
  return given === '' ? undefined : given
}

function asked(token: () => string | undefined): string | undefined {
  try {
    return token()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new GantryClientError(
      'GANTRY_CLIENT_OPTION',
      `token: the function fails: ${why}`,
      'Mend it; a stream asks it again with every attempt to connect.',
      { retryable: true, cause },
    )
  }
}
