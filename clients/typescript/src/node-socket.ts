import { WebSocket } from 'ws'
import { streamUrl } from './address.js'
import { refusal, unreachable, type GantryClientError } from './client-error.js'
import type { OpenSocket } from './socket.js'

/** For a service with `server.tls`: whom to trust, and what to show where it wants certificates of clients. PEM. */
export type ClientTls = Readonly<{
  ca?: string | Uint8Array | undefined
  cert?: string | Uint8Array | undefined
  key?: string | Uint8Array | undefined
}>

/** Bodies of refusals are short; what is longer comes from somebody else. */
const mostBodyBytes = 64 * 1024

/** The WebSocket of the package `ws`, which tells why it was refused and ends at once. */
export function nodeSocket(tls: ClientTls | undefined): OpenSocket {
  return ({ base, token }, on) => {
    const socket = new WebSocket(streamUrl(base), 'gantry.v1', {
      ...(tls as Readonly<{ ca?: string }> | undefined),
      perMessageDeflate: false,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    })
    socket.binaryType = 'arraybuffer'
    let error: GantryClientError | undefined
    let isLive = true
    const closed = (code: number, reason: string): void => {
      if (!isLive) return
      isLive = false
      on.closed({ code, reason, error })
    }
    socket.on('error', (cause) => (error ??= unreachable(base, cause)))
    socket.on('unexpected-response', (request, response) => {
      let body = ''
      const told = (): void => {
        const { statusCode: status = 0, headers } = response
        error ??= refusal(base, { status, retryAfter: headers['retry-after'], body })
        request.destroy()
        closed(1006, '')
      }
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
        if (body.length > mostBodyBytes) response.destroy()
      })
      response.on('error', () => undefined).on('close', told)
    })
    socket.onmessage = ({ data }) => {
      if (isLive) on.data(data as string | ArrayBuffer)
    }
    socket.onclose = ({ code, reason }) => closed(code, reason)
    return {
      send: (text) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(text)
      },
      close: () => {
        isLive = false
        // So that a service that is there learns that this was meant; one that is not is not waited for.
        if (socket.readyState === WebSocket.OPEN) socket.close(1000)
        socket.terminate()
      },
    }
  }
}
