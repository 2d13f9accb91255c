import {
  request as httpRequest,
  type Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http'

export type Relay = Readonly<{
  /** Unix socket of the other process. */
  socketPath: string
  agent: Agent
  /** Names of request headers that are not passed on, beside those that are about one connection. */
  leaveOut?: ReadonlySet<string>
  /** Request headers of ours. */
  headers?: OutgoingHttpHeaders
  /** Headers of the answer that the other process may replace. */
  answerHeaders?: Readonly<Record<string, number | string | string[] | undefined>>
  /** The other process ended, or its answer did. Nothing is written after that. */
  failed: (error: Error) => void
}>

/** Headers that are about one connection, RFC 9110 7.6.1. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])
const none: ReadonlySet<string> = new Set()

/** Has a request answered by another process of ours. Bodies pass as streams, unread. */
export function relay(incoming: IncomingMessage, outgoing: ServerResponse, options: Relay): ClientRequest {
  const { socketPath, agent, leaveOut = none, failed } = options
  const upstream = httpRequest({
    socketPath,
    agent,
    method: incoming.method,
    path: incoming.url ?? '/',
    headers: { ...passedOn(incoming.headers, leaveOut), ...framing(incoming.headers), ...options.headers },
  })
  upstream.once('response', (answer: IncomingMessage) => {
    for (const [name, value] of Object.entries({
      ...options.answerHeaders,
      ...passedOn(answer.headers, none),
    }))
      if (value !== undefined) outgoing.setHeader(name, value)
    if (!incoming.complete) outgoing.setHeader('connection', 'close')
    outgoing.writeHead(answer.statusCode ?? 502)
    answer.pipe(outgoing)
    answer.once('error', failed)
  })
  upstream.on('error', (error) => {
    if (!outgoing.destroyed) failed(error)
  })
  // The client is gone: what it asked for need not be computed.
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) upstream.destroy()
  })
  if (hasBody(incoming.headers)) incoming.pipe(upstream)
  else upstream.end()
  return upstream
}

/**
 * How the body is told from the next request, whatever the method and whatever `Connection` names: without it, Node sends the body of
 * a GET or DELETE bare, and it would be read as another request.
 */
function framing(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  if (headers['transfer-encoding'] !== undefined) return { 'transfer-encoding': 'chunked' }
  const length = headers['content-length']
  return length === undefined ? {} : { 'content-length': length }
}

/** Whether a request has a body, by its headers. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function passedOn(headers: IncomingHttpHeaders, leaveOut: ReadonlySet<string>): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => !hopByHop.has(name) && !leaveOut.has(name) && !named.includes(name),
    ),
  )
}
