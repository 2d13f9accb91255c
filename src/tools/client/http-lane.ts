import type { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { ServerAnswerError, ServerLostError, ServerUnreachableError } from './client-errors.js'
import { type HttpAnswer, HttpAnswerReader } from './http-answer-reader.js'
import type { InferLane, LaneOutcome, PreparedRequest } from './infer-lane.js'
import { serverSocket, type ServerSocket, type ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

type UnderWay = {
  readonly keep: boolean
  readonly done: (outcome: LaneOutcome) => void
  readonly sentMs: number
  writtenMs: number
  firstByteMs: number
}

/** One connection of HTTP/1.1. */
export class HttpLane implements InferLane {
  #socket: ServerSocket | undefined
  #connected = false
  #reader = new HttpAnswerReader()
  #underWay: UnderWay | undefined

  /** @param faultOf - what an answer that is whole says went wrong. */
  constructor(
    readonly target: ServerTarget,
    readonly trust: ServerTrust,
    readonly faultOf: (answer: HttpAnswer) => GantryError | undefined,
  ) {}

  send({ chunks }: PreparedRequest, keep: boolean, done: (outcome: LaneOutcome) => void): void {
    const sentMs = nowMs()
    const underWay = { keep, done, sentMs, writtenMs: sentMs, firstByteMs: 0 }
    this.#underWay = underWay
    const socket = (this.#socket ??= this.#connect())
    if (chunks.length === 1) socket.write(chunks[0]!)
    else {
      socket.cork()
      for (const chunk of chunks) socket.write(chunk)
      socket.uncork()
    }
    underWay.writtenMs = nowMs()
  }

  close(): void {
    this.#socket?.destroy()
  }

  #connect(): ServerSocket {
    const { tls } = this.target
    const socket = serverSocket(this.target, this.trust, 'http/1.1')
    this.#connected = false
    this.#reader = new HttpAnswerReader()
    let cause: Error | undefined
    socket.once(tls ? 'secureConnect' : 'connect', () => (this.#connected = true))
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.once('end', () => this.#ended())
    socket.once('error', (error: Error) => (cause = error))
    socket.once('close', () => this.#closed(socket, cause))
    return socket
  }

  #read(chunk: Buffer): void {
    const underWay = this.#underWay
    if (underWay === undefined) return this.close()
    if (underWay.firstByteMs === 0) underWay.firstByteMs = nowMs()
    try {
      const answer = this.#reader.read(chunk, underWay.keep)
      if (answer !== undefined) this.#answered(answer)
    } catch (error) {
      this.#failed(new ServerAnswerError(this.target.url, (error as Error).message, error))
    }
  }

  /** The server says no more; an answer may end so. */
  #ended(): void {
    const answer = this.#reader.end()
    if (answer !== undefined && this.#underWay !== undefined) this.#answered(answer)
  }

  #answered(answer: HttpAnswer): void {
    if (!answer.keepAlive) this.#drop()
    const error = this.faultOf(answer)
    const { head, body } = answer
    this.#settle(error, error === undefined && this.#underWay?.keep === true ? { head, body } : undefined)
  }

  #closed(socket: ServerSocket, cause: Error | undefined): void {
    if (this.#socket !== socket) return
    const { url } = this.target
    const detail = cause?.message ?? 'the connection was closed'
    const error = this.#connected
      ? new ServerLostError(url, detail, cause)
      : new ServerUnreachableError(url, detail, cause)
    this.#failed(error)
  }

  #failed(error: GantryError): void {
    this.#drop()
    if (this.#underWay !== undefined) this.#settle(error, undefined)
  }

  /** The next request connects anew. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.destroy()
  }

  #settle(error: GantryError | undefined, answer: LaneOutcome['answer']): void {
    const { done, sentMs, writtenMs, firstByteMs } = this.#underWay!
    this.#underWay = undefined
    const receivedMs = nowMs()
    done({
      sentMs,
      writtenMs,
      firstByteMs: firstByteMs === 0 ? receivedMs : firstByteMs,
      receivedMs,
      error,
      answer,
    })
  }
}
