import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2'
import type { Server } from '@grpc/grpc-js'
import type { GrpcConnections } from '../../config/grpc-connections.js'
import { nowMs } from '../../lifecycle/clock.js'

/** A client without a call under way may ping so often, where it needs one. */
const withoutCallsMs = 2 * 3_600_000

/** The highest number of a stream. */
const anyStream = 2 ** 31 - 1

/** What of the connections' rules is about pings of clients. */
export type PingRules = Pick<
  GrpcConnections,
  'keepaliveWithoutCalls' | 'maxPingStrikes' | 'minPingIntervalMs'
>

/**
 * Holds connections to the rules of pings that the library has not: none without calls, and an end for clients that ping too often.
 *
 * @see grpc/grpc, src/core/ext/transport/chttp2/transport/ping_abuse_policy.cc
 */
export class ClientPings {
  readonly #watched = new WeakSet<object>()

  constructor(
    readonly rules: PingRules,
    readonly now: () => number = nowMs,
  ) {}

  /** Watches connections that come from here on; to be called again where the server may listen elsewhere. */
  watch(grpc: Server): void {
    if (this.rules.keepaliveWithoutCalls && this.rules.maxPingStrikes === 0) return
    for (const listener of listenersOf(grpc)) {
      if (this.#watched.has(listener)) continue
      this.#watched.add(listener)
      listener.on('session', (session) => this.#hold(session))
    }
  }

  #hold(session: Http2Session): void {
    let calls = 0
    const strikes = new PingStrikes(this.rules, this.now)
    session.on('stream', (stream: ServerHttp2Stream) => {
      calls += 1
      stream.once('close', () => (calls -= 1))
      if (this.rules.maxPingStrikes > 0) onSending(stream, () => strikes.forget())
    })
    if (!this.rules.keepaliveWithoutCalls) pingOnlyIf(() => calls > 0, session)
    if (this.rules.maxPingStrikes > 0)
      session.on('ping', () => {
        if (strikes.ping(calls > 0)) endCalmly(session)
      })
  }
}

/** Counts pings of one client that come too soon. */
export class PingStrikes {
  #strikes = 0
  #lastMs = -Infinity

  constructor(
    readonly rules: PingRules,
    readonly now: () => number,
  ) {}

  /** Something was sent to the client. */
  forget(): void {
    this.#strikes = 0
    this.#lastMs = -Infinity
  }

  /** @returns whether the client has pinged too often. */
  ping(hasCalls: boolean): boolean {
    const { keepaliveWithoutCalls, maxPingStrikes, minPingIntervalMs } = this.rules
    if (maxPingStrikes === 0) return false
    const intervalMs = hasCalls || keepaliveWithoutCalls ? minPingIntervalMs : withoutCallsMs
    const atMs = this.now()
    if (atMs - this.#lastMs < intervalMs) this.#strikes += 1
    this.#lastMs = atMs
    return this.#strikes > maxPingStrikes
  }
}

type Listener = { on(event: 'session', take: (session: Http2Session) => void): unknown }

/** Private parts of the library; none where they are not found. */
function listenersOf(grpc: Server): Iterable<Listener> {
  const { http2Servers } = grpc as unknown as { http2Servers?: ReadonlyMap<Listener, unknown> }
  return http2Servers?.keys() ?? []
}

function onSending(stream: ServerHttp2Stream, sending: () => void): void {
  const write = stream.write.bind(stream) as (...given: unknown[]) => boolean
  stream.write = (...given: unknown[]) => {
    sending()
    return write(...given)
  }
}

/** The library pings on; a ping that is not sent counts as answered. */
function pingOnlyIf(isWanted: () => boolean, session: Http2Session): void {
  const ping = session.ping.bind(session) as (...given: unknown[]) => boolean
  session.ping = (...given: unknown[]) => {
    if (isWanted()) return ping(...given)
    const answered = given.at(-1) as (error: Error | null, ms: number, payload: Buffer) => void
    queueMicrotask(() => answered(null, 0, Buffer.alloc(8)))
    return true
  }
}

function endCalmly(session: Http2Session): void {
  if (session.destroyed) return
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, anyStream, Buffer.from('too_many_pings'))
  // What says why leaves first.
  setImmediate(() => session.destroy())
}
