import { savedToken, tokenProtocol } from '../api/token.js'
import type { ServerMessage } from '../api/types.js'
import { everySecond } from '../state/seconds.js'
import { monotonicMs, serviceClock } from '../state/service-clock.js'
import { Heartbeat } from './heartbeat.js'

/** A stream as the page speaks of it. Times are monotonic, in ms. */
export type StreamState = Readonly<{
  state: 'connecting' | 'open' | 'waiting' | 'closed'
  /** `silent`: nothing came although the page asked; `broken`: closed by the far side, or never opened. */
  trouble?: 'silent' | 'broken'
  /** With trouble: when something last came. */
  heardMs?: number
  retryAtMs?: number
}>

export type Subscribe = Readonly<{
  cameras: readonly string[]
  detections: boolean
  frames: boolean
  resumeAfter?: string
}>

export interface ConnectionListener {
  state(state: StreamState): void
  message(message: ServerMessage): void
  binary?(data: ArrayBuffer): void
}

const firstRetryMs = 500
const longestRetryMs = 10_000
const openWithinMs = 8_000

/**
 * A WebSocket of `gantry.v1` that comes back by itself, with full-jitter waits, and says again what it wants. A line that is lost without
 * a word (sleep, another network, a forgetful NAT) is found by pings of its own, for a page sees none of WebSocket's.
 */
export class StreamConnection {
  readonly #heartbeat = new Heartbeat()
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #stopTicking: (() => void) | undefined
  #failures = 0
  #cursor: string | undefined
  #stopped = false
  #state: StreamState = { state: 'connecting' }
  /** Monotonic times of pings that wait for their pongs, which come in order. */
  #pingedMs: number[] = []
  /** A service of before pings calls them a mistake. */
  #pings = true

  constructor(
    readonly listener: ConnectionListener,
    private wants: Subscribe,
    /** Whether to ask for what was sent while the line was down. */
    readonly resumes: boolean,
  ) {}

  start(): void {
    this.#stopped = false
    window.addEventListener('online', this.#wake)
    window.addEventListener('offline', this.#wake)
    document.addEventListener('visibilitychange', this.#wake)
    this.#stopTicking = everySecond(() => this.#tick())
    this.#connect()
  }

  /** Asks for something else from now on. */
  subscribe(wants: Subscribe): void {
    this.wants = wants
    if (this.#state.state === 'open') this.#say(wants)
  }

  /** Tries at once instead of waiting, after the token was given for instance. */
  retryNow(): void {
    if (this.#stopped || this.#socket !== undefined) return
    clearTimeout(this.#timer)
    this.#connect()
  }

  stop(): void {
    this.#stopped = true
    this.#stopTicking?.()
    window.removeEventListener('online', this.#wake)
    window.removeEventListener('offline', this.#wake)
    document.removeEventListener('visibilitychange', this.#wake)
    this.#letGo(1000)
    this.#become({ state: 'closed' })
  }

  /** The network came or went, or somebody looks again: what was true before may not be now. */
  readonly #wake = (): void => {
    if (document.hidden) return
    if (this.#state.state === 'open') this.#ask()
    else this.retryNow()
  }

  #connect(): void {
    const url = new URL('api/v1/stream', location.href)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    url.hash = url.search = ''
    const token = savedToken()
    const { trouble, heardMs } = this.#state
    this.#become({
      state: 'connecting',
      ...(trouble && { trouble }),
      ...(heardMs !== undefined && { heardMs }),
    })
    const socket = new WebSocket(url, ['gantry.v1', ...(token === undefined ? [] : [tokenProtocol(token)])])
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    this.#timer = setTimeout(() => this.#lost('broken'), openWithinMs)
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#receive(event.data)
    socket.onclose = () => this.#lost('broken')
  }

  #receive(data: string | ArrayBuffer): void {
    this.#heartbeat.heard(monotonicMs())
    if (this.#state.state === 'open' && this.#state.trouble) this.#become({ state: 'open' })
    if (typeof data !== 'string') return this.listener.binary?.(data)
    const message = JSON.parse(data) as ServerMessage
    if (message.type === 'hello') this.#opened(message.cursor)
    if (message.type === 'pong') return this.#ponged(message.at)
    if (message.type === 'detections') this.#cursor = message.cursor
    if (message.type === 'error' && message.code === 'GANTRY_CURSOR') this.#cursor = undefined
    if (message.type === 'error' && message.code === 'GANTRY_WS_MESSAGE') this.#pings = false
    this.listener.message(message)
  }

  #opened(cursor: string): void {
    clearTimeout(this.#timer)
    this.#failures = 0
    this.#heartbeat.begin(monotonicMs())
    this.#pings = true
    const resumeAfter = this.resumes ? this.#cursor : undefined
    // Another run of the service counts from anew: its cursors say nothing about ours.
    const sameRun = resumeAfter?.split('-')[0] === cursor.split('-')[0]
    this.#say(resumeAfter !== undefined && sameRun ? { ...this.wants, resumeAfter } : this.wants)
    this.#cursor = sameRun ? (resumeAfter ?? cursor) : cursor
    this.#become({ state: 'open' })
    this.#ask()
  }

  #tick(): void {
    if (this.#state.state !== 'open' || !this.#pings) return
    const verdict = this.#heartbeat.tick(monotonicMs())
    if (verdict === 'ask') this.#ping()
    else if (verdict === 'dead') this.#lost('silent')
    else if (verdict === 'quiet' && !this.#state.trouble)
      this.#become({ state: 'open', trouble: 'silent', heardMs: this.#heartbeat.heardMs })
  }

  #ask(): void {
    this.#heartbeat.ask(monotonicMs())
    this.#ping()
  }

  #ping(): void {
    if (!this.#pings) return
    this.#pingedMs.push(monotonicMs())
    this.#socket?.send(JSON.stringify({ type: 'ping' }))
  }

  #ponged(at: string): void {
    const pingedMs = this.#pingedMs.shift()
    if (pingedMs !== undefined) serviceClock.read(Date.parse(at), pingedMs)
  }

  #lost(trouble: 'silent' | 'broken'): void {
    if (this.#stopped) return
    const wasOpen = this.#state.state === 'open'
    this.#letGo()
    const { heardMs } = wasOpen ? this.#heartbeat : this.#state
    const why = {
      trouble: wasOpen ? trouble : (this.#state.trouble ?? trouble),
      ...(heardMs !== undefined && { heardMs }),
    }
    const boundMs = Math.min(longestRetryMs, firstRetryMs * 2 ** this.#failures)
    // A line that fell silent has been waited for long enough.
    const waitMs = trouble === 'silent' ? 0 : Math.max(boundMs / 4, Math.random() * boundMs)
    this.#failures += 1
    this.#timer = setTimeout(() => this.#connect(), waitMs)
    this.#become({ state: 'waiting', ...why, retryAtMs: monotonicMs() + waitMs })
  }

  /** Ends with the socket without waiting for the far side, which may be long gone. */
  #letGo(code?: number): void {
    clearTimeout(this.#timer)
    this.#pingedMs = []
    const socket = this.#socket
    this.#socket = undefined
    if (socket === undefined) return
    socket.onmessage = socket.onclose = null
    socket.close(code)
  }

  #become(state: StreamState): void {
    this.#state = state
    this.listener.state(state)
  }

  #say(wants: Subscribe): void {
    this.#socket?.send(JSON.stringify({ type: 'subscribe', events: false, ...wants }))
  }
}
