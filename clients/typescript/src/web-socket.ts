import { streamUrl } from './address.js'
import { type GantryClientError, optionError, refusal, unreachable } from './client-error.js'
import type { Closed, OpenSocket } from './socket.js'

const answersWithinMs = 5_000

/**
 * The WebSocket that browsers, Deno and newer versions of Node have.
 *
 * @param asksWhy - Asks by HTTP why a connection was refused, which such a WebSocket does not tell.
 * @throws GantryClientError where there is none.
 */
export function webSocket(asksWhy: boolean): OpenSocket {
  if (typeof globalThis.WebSocket !== 'function')
    throw optionError('this runtime has no WebSocket', 'Use Node 20 or newer, or a browser.')
  return ({ base, token }, on) => {
    const socket = new WebSocket(streamUrl(base), [
      'gantry.v1',
      ...(token === undefined ? [] : [tokenProtocol(token)]),
    ])
    socket.binaryType = 'arraybuffer'
    let wasOpen = false
    socket.onopen = () => (wasOpen = true)
    socket.onmessage = ({ data }: { data: unknown }) => on.data(data as string | ArrayBuffer)
    let told = (how: Closed): void => on.closed(how)
    socket.onclose = ({ code, reason }) => {
      if (wasOpen || !asksWhy) return told({ code, reason })
      void whyNot(base, token).then((error) => told({ code, reason, error }))
    }
    return {
      send: (text) => socket.send(text),
      close: () => {
        told = () => undefined
        socket.onopen = socket.onmessage = socket.onclose = null
        socket.close()
      },
    }
  }
}

/** A browser cannot set headers on a WebSocket: the token goes along as a sub-protocol, which the server never repeats. */
function tokenProtocol(token: string): string {
  const bytes = new TextEncoder().encode(token)
  const base64 = btoa(String.fromCharCode(...bytes))
  return `gantry.token.${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** The path of the stream answers a plain request that has all it needs with 426. */
async function whyNot(base: string, token: string | undefined): Promise<GantryClientError | undefined> {
  const url = new URL('api/v1/stream', base)
  try {
    const response = await fetch(url, {
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      signal: AbortSignal.timeout(answersWithinMs),
    })
    const body = await response.text()
    if (response.status === 426) return undefined
    return refusal(base, {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body,
    })
  } catch (error) {
    return unreachable(base, error)
  }
}
