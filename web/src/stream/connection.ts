import { savedToken, tokenProtocol } from '../api/token.js'
import type { ServerMessage } from '../api/types.js'

export type ConnectionState = 'connecting' | 'open' | 'waiting' | 'closed'

export type Subscribe = Readonly<{
  cameras: readonly string[]
  detections: boolean
  frames: boolean
  resumeAfter?: string
}>

export interface ConnectionListener {
  state(state: ConnectionState, retryAtMs: number | undefined): void
  message(message: ServerMessage): void
  binary?(data: ArrayBuffer): void
}

const firstRetryMs = 500
const longestRetryMs = 10_000
/** The server pings every 15 s, but browsers hide pings: a line that is dead is found by the browser closing it. */
const openWithinMs = 8_000

/** A WebSocket of `gantry.v1` that comes back by itself, with full-jitter waits, and says again what it wants. */
export class StreamConnection {
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #cursor: string | undefined
  #stopped = false

  constructor(
    readonly listener: ConnectionListener,
    private wants: Subscribe,
    /** Whether to ask for what was sent while the line was down. */
    readonly resumes: boolean,
  ) {}

  start(): void {
    this.#stopped = false
    this.#connect()
  }

  /** Asks for something else from now on. */
  subscribe(wants: Subscribe): void {
    this.wants = wants
    if (this.#socket?.readyState === WebSocket.OPEN) this.#say(wants)
  }

  /** Tries at once instead of waiting, after the token was given for instance. */
  retryNow(): void {
    if (this.#stopped || this.#socket !== undefined) return
    clearTimeout(this.#timer)
    this.#connect()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#socket?.close(1000)
    this.#socket = undefined
    this.listener.state('closed', undefined)
  }

  #connect(): void {
    const url = new URL('api/v1/stream', location.href)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    url.hash = url.search = ''
    const token = savedToken()
    this.listener.state('connecting', undefined)
    const socket = new WebSocket(url, ['gantry.v1', ...(token === undefined ? [] : [tokenProtocol(token)])])
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    this.#timer = setTimeout(() => socket.close(), openWithinMs)
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#receive(socket, event.data)
    socket.onclose = () => this.#closed(socket)
  }

  #receive(socket: WebSocket, data: string | ArrayBuffer): void {
    if (socket !== this.#socket) return
    if (typeof data !== 'string') return this.listener.binary?.(data)
    const message = JSON.parse(data) as ServerMessage
    if (message.type === 'hello') this.#opened(message.cursor)
    if (message.type === 'detections') this.#cursor = message.cursor
    if (message.type === 'error' && message.code === 'GANTRY_CURSOR') this.#cursor = undefined
    this.listener.message(message)
  }

  #opened(cursor: string): void {
    clearTimeout(this.#timer)
    this.#failures = 0
    const resumeAfter = this.resumes ? this.#cursor : undefined
    // Another run of the service counts from anew: its cursors say nothing about ours.
    const sameRun = resumeAfter?.split('-')[0] === cursor.split('-')[0]
    this.#say(resumeAfter !== undefined && sameRun ? { ...this.wants, resumeAfter } : this.wants)
    this.#cursor = sameRun ? (resumeAfter ?? cursor) : cursor
    this.listener.state('open', undefined)
  }

  #closed(socket: WebSocket): void {
    if (socket !== this.#socket || this.#stopped) return
    clearTimeout(this.#timer)
    this.#socket = undefined
    const boundMs = Math.min(longestRetryMs, firstRetryMs * 2 ** this.#failures)
    const waitMs = Math.max(boundMs / 4, Math.random() * boundMs)
    this.#failures += 1
    this.#timer = setTimeout(() => this.#connect(), waitMs)
    this.listener.state('waiting', Date.now() + waitMs)
  }

  #say(wants: Subscribe): void {
    this.#socket?.send(JSON.stringify({ type: 'subscribe', events: false, ...wants }))
  }
}
