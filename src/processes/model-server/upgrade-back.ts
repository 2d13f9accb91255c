import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'

/**
 * Gives a connection whose request offers an upgrade back to whom it came from: the request is written down again with the client's address,
 * and from then on bytes pass both ways, unread.
 *
 * @param head - what was read behind the request.
 * @param returnPath - Unix socket of the other process.
 */
export function sendUpgradeBack(
  { method, url, httpVersion, rawHeaders, socket: { remoteAddress } }: IncomingMessage,
  client: Duplex,
  head: Buffer,
  returnPath: string,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2)
    // Whoever is told of the client is told by us alone.
    if (rawHeaders[at]?.toLowerCase() !== 'x-forwarded-for')
      lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  lines.push(`x-forwarded-for: ${remoteAddress ?? ''}`)
  const back = connect(returnPath)
  back.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  // Each side hears of the other's end, whatever it was.
  const ended = (): void => {
    client.destroy()
    back.destroy()
  }
  pipeline(client, back, ended)
  pipeline(back, client, ended)
}
