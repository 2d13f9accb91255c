import type { GantryError } from '../../errors.js'
import { ServerLostError, ServerUnreachableError } from './client-errors.js'
import type { HeaderField } from './hpack-tables.js'
import { Http2Connection } from './http2-connection.js'
import type { ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

const service = '/inference.GRPCInferenceService/'

/** A connection for unary calls, any number at once. It is made with the first call, and again with the one after it was lost. */
export class GrpcChannel {
  /** Lanes that are open. */
  lanes = 0
  #connection: Http2Connection | undefined
  readonly #fields = new Map<string, readonly HeaderField[]>()

  constructor(
    readonly target: ServerTarget,
    readonly trust: ServerTrust,
    readonly token: string | undefined,
  ) {}

  /** One that takes calls. */
  connection(): Http2Connection {
    if (this.#connection?.isOpen !== true) this.#connection = new Http2Connection(this.target, this.trust)
    return this.#connection
  }

  /** What a call of that name sends before its message. */
  fields(method: string): readonly HeaderField[] {
    const known = this.#fields.get(method)
    if (known !== undefined) return known
    const { host, port, tls } = this.target
    const fields: readonly HeaderField[] = [
      [':method', 'POST'],
      [':scheme', tls ? 'https' : 'http'],
      [':authority', `${host.includes(':') ? `[${host}]` : host}:${port}`],
      [':path', service + method],
      ['te', 'trailers'],
      ['content-type', 'application/grpc'],
      ...(this.token === undefined ? [] : [['authorization', `Bearer ${this.token}`] as const]),
    ]
    this.#fields.set(method, fields)
    return fields
  }

  /** Why a call ended without an answer. */
  lost(connection: Http2Connection | undefined, cause: Error | undefined): GantryError {
    const detail = cause?.message ?? 'the connection was closed'
    return connection?.isEstablished === true
      ? new ServerLostError(this.target.url, detail, cause)
      : new ServerUnreachableError(this.target.url, detail, cause)
  }

  /** A lane of it was closed; the last one ends the connection. */
  release(): void {
    this.lanes -= 1
    if (this.lanes === 0) this.#connection?.closeWhenIdle()
  }

  close(): void {
    this.#connection?.close()
  }
}
