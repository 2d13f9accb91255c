import { isDeepStrictEqual } from 'node:util'
import { Agent, request } from 'undici'
import { z } from 'zod'
import type { ClientTlsFiles } from '../config/client-tls.js'
import { errorCodes, type ErrorCode, GantryError, RemoteError } from '../errors.js'
import { ClientTls } from '../lifecycle/client-tls.js'
import type { Log } from '../lifecycle/log.js'
import { tlsFailure } from '../lifecycle/tls-failure.js'
import { nodeScope, scopeHeader } from './node-scope.js'

const connectTimeoutMs = 2_000
/** Of another node's answer; a snapshot of a main stream may take long. */
const usualTimeoutMs = 5_000

export type PeerQuestion = Readonly<{
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  /** JSON, or bytes with their type. */
  body?: unknown
  bytes?: Readonly<{ type: string; data: Uint8Array }>
  withinMs?: number
  /** Whoever asked is gone. */
  signal?: AbortSignal
}>

export type PeerAnswer = Readonly<{ headers: (name: string) => string | undefined; bytes: Buffer }>

/** The node that has a camera does not answer. */
export class PeerUnavailableError extends GantryError {
  readonly code = 'GANTRY_CLUSTER_UNAVAILABLE'
  readonly hint = 'Try again in a few seconds: where the node is gone, another one takes its cameras.'
  override readonly retryable = true
  constructor(url: string, reason: string, cause?: unknown) {
    super(`the node at ${url} does not answer: ${reason}`, { cause })
    this.name = 'PeerUnavailableError'
  }
}

/** What another node says is wrong with a request. */
class PeerProblem extends RemoteError {
  constructor(
    record: ConstructorParameters<typeof RemoteError>[0],
    override readonly field: string | undefined,
  ) {
    super(record)
  }
}

/** Another node does not take this one for one of its cluster. */
const strangerReasons: Readonly<Record<number, string>> = {
  401: 'it does not take the token of this node: server.token must be the same on all nodes',
  403: 'it refuses the name that it was asked by: add that to its server.allowedHosts, or give it a cluster.url with its address',
}

/** Asks other nodes of the cluster over their API, with the token that all of them have. */
export class PeerClient {
  readonly #tls: ClientTls
  #open: Readonly<{ material: object; agent: Agent }> | undefined

  constructor(
    readonly token: string | undefined,
    readonly tls: ClientTlsFiles | undefined,
    log: Log,
  ) {
    this.#tls = new ClientTls(tls ?? true, 'cluster.tls', log)
  }

  /** @throws PeerUnavailableError; what the other node says is wrong, as it says it */
  async ask(url: string, question: PeerQuestion): Promise<PeerAnswer> {
    const { method, path, body, bytes, withinMs = usualTimeoutMs, signal } = question
    const type = bytes?.type ?? (body === undefined ? undefined : 'application/json')
    let status: number
    let answer: PeerAnswer
    try {
      const {
        statusCode,
        headers,
        body: answered,
      } = await request(new URL(path, url), {
        dispatcher: await this.#agent(),
        method,
        headers: {
          [scopeHeader]: nodeScope,
          ...(type !== undefined && { 'content-type': type }),
          ...(this.token !== undefined && { authorization: `Bearer ${this.token}` }),
        },
        body: bytes?.data ?? (body === undefined ? null : JSON.stringify(body)),
        signal: AbortSignal.any([AbortSignal.timeout(withinMs), ...(signal ? [signal] : [])]),
      })
      const header = (name: string) => {
        const value = headers[name]
        return Array.isArray(value) ? value[0] : value
      }
      status = statusCode
      answer = { headers: header, bytes: Buffer.from(await answered.arrayBuffer()) }
    } catch (error) {
      throw new PeerUnavailableError(url, reasonFor(error, url, this.tls), error)
    }
    if (status < 400) return answer
    throw problemOf(url, status, answer.bytes)
  }

  /** Another one once the files of TLS have changed. */
  async #agent(): Promise<Agent> {
    const { ca, cert, key, passphrase, servername } = (await this.#tls.options()) ?? {}
    const all = Object.entries({ ca, cert, key, passphrase, servername })
    const material = Object.fromEntries(all.filter(([, value]) => value !== undefined))
    if (this.#open !== undefined && isDeepStrictEqual(this.#open.material, material)) return this.#open.agent
    void this.#open?.agent.close()
    const agent = new Agent({ connect: { ...material, timeout: connectTimeoutMs } })
    this.#open = { material, agent }
    return agent
  }

  /** Questions that wait for their answers are given up. */
  async close(): Promise<void> {
    await this.#open?.agent.destroy()
  }
}

/** A connection that was ended, after TLS was agreed on. */
const endedCodes: readonly unknown[] = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']

function reasonFor(error: unknown, url: string, tls: ClientTlsFiles | undefined): string {
  // By TLS 1.3 a client is done before the server says that it wants a certificate, so that this is all that is heard of it.
  const isEnded = error instanceof Error && 'code' in error && endedCodes.includes(error.code)
  if (isEnded && url.startsWith('https:') && tls?.cert === undefined)
    return (
      'it ended the connection without an answer, as where its server.tls.clientCa asks for a certificate; ' +
      'then set cluster.tls.cert and cluster.tls.key'
    )
  const advice = tlsFailure(error, 'cluster.tls', 'cluster.url of the other node: http://')
  if (advice !== undefined) return `${advice.reason}; ${advice.fix}`
  return error instanceof Error ? error.message : String(error)
}

function problemOf(url: string, status: number, bytes: Buffer): GantryError {
  const stranger = strangerReasons[status]
  if (stranger !== undefined) return new PeerUnavailableError(url, stranger)
  try {
    const { code, detail, hint, problems } = toldProblemSchema.parse(JSON.parse(bytes.toString('utf8')))
    if (isCode(code)) return new PeerProblem({ code, message: detail, hint }, problems[0]?.path)
  } catch {
    // Somebody else answers there.
  }
  return new PeerUnavailableError(url, `it answers with status ${status}`)
}

/** What is read of a problem that another node tells. */
const toldProblemSchema = z.object({
  code: z.string(),
  detail: z.string(),
  hint: z.string(),
  problems: z.array(z.object({ path: z.string() })).default([]),
})

function isCode(code: string): code is ErrorCode {
  return (errorCodes as readonly string[]).includes(code)
}
