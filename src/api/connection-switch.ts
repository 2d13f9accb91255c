import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { handOver } from './hand-over.js'

/** Takes a connection over, with what was read of it. @returns whether it took it; a promise where it has to start for that. */
export type Adopt = (socket: Socket, head: Buffer) => boolean | Promise<boolean>

/** Longest start of a request that tells where it goes: `OPTIONS /v2/`. */
const tellingBytes = 12
const modelRequest = /^[A-Z]+ \/v2[/? ]/

/** What the path of a request says of who answers it. */
export function isModelPath(url: string): boolean {
  return /^\/v2(?:[/?]|$)/.test(url)
}

/**
 * Stands before an HTTP server: a connection whose first request is for `/v2` goes to the model server as a whole, so that tensors of
 * its clients never pass through the process that the cameras need. All others are the server's own.
 *
 * To be made before the server listens.
 */
export class ConnectionSwitch {
  readonly #waiting = new Set<Socket>()
  readonly #serve: (socket: Socket) => void

  /** @param atMostMs - longest that a client may take to say what it wants. */
  constructor(
    server: Server,
    readonly adopt: Adopt,
    readonly atMostMs: number,
  ) {
    const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
    this.#serve = (socket) => {
      for (const listener of listeners) listener.call(server, socket)
    }
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => this.#look(socket))
  }

  /** Gives a connection to the server itself. */
  serve(socket: Socket): void {
    this.#serve(socket)
  }

  /** Ends the connections that have not said what they want. */
  close(): void {
    for (const socket of this.#waiting) socket.destroy()
  }

  /** Waits with a connection for whoever may take it. */
  async #once(socket: Socket, taken: Promise<boolean>): Promise<boolean> {
    const ignore = (): void => undefined
    this.#waiting.add(socket)
    socket.on('error', ignore)
    try {
      return await taken
    } finally {
      this.#waiting.delete(socket)
      socket.off('error', ignore)
    }
  }

  #look(socket: Socket): void {
    let head: Buffer = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(), this.atMostMs)
    const ignore = (): void => undefined
    const seeEnd = (): void => void socket.destroy()
    const done = (): void => {
      clearTimeout(timer)
      this.#waiting.delete(socket)
      socket.off('data', read).off('error', ignore).off('end', seeEnd).off('close', done)
    }
    const read = (data: Buffer): void => {
      head = head.byteLength === 0 ? data : Buffer.concat([head, data])
      if (head.byteLength < tellingBytes && !head.includes(10)) return
      done()
      const serve = (): void => {
        socket.unshift(head)
        this.#serve(socket)
      }
      if (!modelRequest.test(head.toString('latin1', 0, tellingBytes))) return serve()
      const taken = handOver(socket, () => this.adopt(socket, head))
      if (typeof taken === 'boolean') return taken ? undefined : serve()
      void this.#once(socket, taken).then((isTaken) => (isTaken || socket.destroyed ? undefined : serve()))
    }
    this.#waiting.add(socket)
    socket.on('data', read).on('error', ignore).on('end', seeEnd).on('close', done)
  }
}
