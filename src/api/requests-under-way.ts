import type { Server, ServerResponse } from 'node:http'
import { atMost } from '../lifecycle/delay.js'

/** Requests that a server has begun and not answered, so that a stop can wait for those that came before it. */
export class RequestsUnderWay {
  readonly #responses = new Set<ServerResponse>()
  #draining = false

  /** To be made before the server listens. */
  constructor(server: Server) {
    // Before the application sees it: an answer that is refused at the door is one too.
    server.prependListener('request', (_request, response) => this.#began(response))
  }

  /** From here on every answer ends its connection, so that the client finds another server. */
  refuse(): void {
    this.#draining = true
    for (const response of this.#responses) closeAfter(response)
  }

  /** Resolves when all that have begun by now are answered or gone, or after `withinMs`. */
  async answered(withinMs: number): Promise<void> {
    const closed = [...this.#responses].map(
      (response) => new Promise<void>((resolve) => response.once('close', () => resolve())),
    )
    await atMost(withinMs, Promise.all(closed))
  }

  #began(response: ServerResponse): void {
    if (this.#draining) closeAfter(response)
    this.#responses.add(response)
    response.once('close', () => this.#responses.delete(response))
  }
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close')
}
