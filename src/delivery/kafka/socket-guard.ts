import net from 'node:net'
import tls from 'node:tls'
import type { ISocketFactory } from 'kafkajs'

const keepAliveMs = 10_000

/** Why connections of a client end that is not needed any more; no news to anybody. */
export const endedByUs = 'kafka client ended'

/**
 * Knows every socket of one client, so that the client can be ended at once: kafkajs waits for answers that may never come, and its
 * retries would send a batch again, late and out of order.
 */
export class SocketGuard {
  readonly #sockets = new Set<net.Socket>()
  #closed = false
  #failure: Error | undefined
  #failures = 0

  /** What ended the last connection that failed, as the system or TLS says it: the client library keeps little of it. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Connections that have failed so far, which one to a process that stands still does not. */
  get failures(): number {
    return this.#failures
  }

  readonly factory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (this.#closed) throw new Error(endedByUs)
    // kafkajs passes `ssl: true` or undefined through, whatever its types say.
    const useTls = (ssl as tls.ConnectionOptions | boolean | undefined) ?? false
    const options = typeof useTls === 'object' ? useTls : {}
    const servername = net.isIP(host) === 0 ? { servername: host } : {}
    const socket =
      useTls === false
        ? net.connect({ host, port }, onConnect)
        : tls.connect({ host, port, ...servername, ...options }, onConnect)
    socket.setKeepAlive(true, keepAliveMs)
    socket.setNoDelay(true)
    this.#sockets.add(socket)
    socket.on('error', (error: Error) => {
      if (error.message === endedByUs) return
      this.#failure = error
      this.#failures += 1
    })
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  /** Ends every connection and allows no new one. With an error, as kafkajs does not listen to `close`. */
  close(): void {
    this.#closed = true
    for (const socket of this.#sockets) socket.destroy(new Error(endedByUs))
  }
}
