import { baseOf, tokenOf, type Address } from './address.js'
import { GantryClientError } from './client-error.js'
import { Heartbeat } from './heartbeat.js'
import type {
  DetectionsMessage,
  ErrorMessage,
  GapMessage,
  PictureMessage,
  ServerMessage,
  Wants,
} from './messages.js'
import { parsePictureMessage } from './picture-message.js'
import { monotonicMs, ServiceClock } from './service-clock.js'
import type { Closed, OpenSocket, StreamSocket } from './socket.js'
import { onWake } from './wake.js'

/** How a stream stands. Times are monotonic, in ms ({@link monotonicMs}). */
export type StreamState = Readonly<{
  /** `waiting`: for the next try. `paused`: for whoever reads. `closed`: for good, with `error` where it was not meant. */
  state: 'connecting' | 'open' | 'waiting' | 'paused' | 'closed'
  /** `silent`: nothing came although the client asked; `broken`: closed by the far side, or never opened. */
  trouble?: 'silent' | 'broken'
  /** With trouble: what is known of why. */
  error?: GantryClientError
  /** With trouble: when something last came. */
  heardMs?: number
  retryAtMs?: number
}>

export interface StreamListener {
  state(state: StreamState): void
  message(message: DetectionsMessage | GapMessage | ErrorMessage): void
  picture?(picture: PictureMessage): void
}

export type ConnectionOptions = Address &
  Readonly<{
    open: OpenSocket
    wants: Wants
    /** Whether to ask for what was sent while the line was down. */
    resumes: boolean
    /** Begins after the message with this cursor. */
    resumeAfter?: string | undefined
    /** What is refused for good ends the stream, or it asks again later: for a page, where somebody gives the token meanwhile. */
    whenRefused: 'end' | 'retry'
    /** Learns the time of the service. */
    clock?: ServiceClock
  }>

const firstRetryMs = 500
const longestRetryMs = 10_000
const openWithinMs = 8_000
const tickMs = 1_000
/** A line that lived so long is no reason to wait longer for the next one. */
const steadyMs = 5_000
/** The service bounds how often a client may ask for something else. */
const askAgainMs = 2_000
/** Close codes with which another try would end alike: the service wants no more of what this client sends. */
const finalCodes: ReadonlySet<number> = new Set([1008, 1009])

/**
 * A WebSocket of `gantry.v1` that comes back by itself, with full-jitter waits, says again what it wants, and resumes after the last message
 * that it handed on: none twice, and none left out without a `gap`. A line that is lost without a word (sleep, another network, a forgetful
 * NAT) is found by pings of its own.
 */
export class StreamConnection {
  readonly clock: ServiceClock
  readonly #base: string
  readonly #heartbeat = new Heartbeat()
  #wants: Wants
  #socket: StreamSocket | undefined
  #retryTimer: ReturnType<typeof setTimeout> | undefined
  #askTimer: ReturnType<typeof setTimeout> | undefined
  #ticker: ReturnType<typeof setInterval> | undefined
  #stopWaking: (() => void) | undefined
  #failures = 0
  #openedMs = 0
  #wasEverOpen = false
  #cursor: string | undefined
  #state: StreamState = { state: 'connecting' }
  /** What was asked and has no answer yet: each has one, and they come in order. Of pings when they were sent. */
  #asked: ('subscribe' | number)[] = []
  /** A service of before pings calls them a mistake. */
  #pings = true

  /** @throws GantryClientError for a URL that is none. */
  constructor(
    readonly listener: StreamListener,
    readonly options: ConnectionOptions,
  ) {
    this.#base = baseOf(options)
    this.#wants = options.wants
    this.#cursor = options.resumeAfter
    this.clock = options.clock ?? new ServiceClock()
  }

  get state(): StreamState {
    return this.#state
  }

  start(): void {
    this.#stopWaking = onWake(() => this.#wake())
    this.#ticker = setInterval(() => this.#tick(), tickMs)
    this.#connect()
  }

  /** Asks for something else from now on. */
  subscribe(wants: Wants): void {
    this.#wants = wants
    if (this.#state.state === 'open') this.#say(this.#resumeAfter)
  }

  /** Tries at once instead of waiting, after the token was given for instance. */
  retryNow(): void {
    if (this.#state.state === 'waiting') this.#connect()
  }

  /** Lets go of the line until {@link resume}, which gets what comes meanwhile: for a reader that is behind. */
  pause(): void {
    if (this.#state.state === 'closed') return
    this.#letGo()
    this.#become({ state: 'paused' })
  }

  resume(): void {
    if (this.#state.state === 'paused') this.#connect()
  }

  stop(): void {
    this.#end({ state: 'closed' })
  }

  get #resumeAfter(): string | undefined {
    return this.options.resumes ? this.#cursor : undefined
  }

  #wake(): void {
    if (this.#state.state === 'open') this.#ask()
    else this.retryNow()
  }

  #connect(): void {
    this.#letGo()
    const { trouble, heardMs, error } = this.#state
    this.#become({ state: 'connecting', ...known({ trouble, heardMs, error }) })
    this.#retryTimer = setTimeout(() => this.#lost('broken'), openWithinMs)
    let token: string | undefined
    try {
      token = tokenOf(this.options)
    } catch (error) {
      return this.#lost('broken', error as GantryClientError)
    }
    this.#socket = this.options.open(
      { base: this.#base, token },
      { data: (data) => this.#receive(data), closed: (how) => this.#closed(how) },
    )
  }

  #receive(data: string | ArrayBuffer): void {
    this.#heartbeat.heard(monotonicMs())
    if (this.#state.state === 'open' && this.#state.trouble) this.#become({ state: 'open' })
    if (typeof data === 'string') return this.#read(parsed(data))
    const picture = parsePictureMessage(data)
    if (picture !== undefined) this.listener.picture?.(picture)
  }

  /** Passes over what it does not know: later versions of the service send more. */
  #read(message: ServerMessage | undefined): void {
    switch (message?.type) {
      case 'hello':
        return this.#opened(message.cursor)
      case 'subscribed':
        this.#asked.shift()
        return
      case 'pong':
        return this.#ponged(message.at)
      case 'error':
        return this.#refused(message)
      case 'gap':
        return this.listener.message(message)
      case 'detections':
        if (!isAfter(message.cursor, this.#cursor)) return
        this.#cursor = message.cursor
        return this.listener.message(message)
      case undefined:
      default:
        return
    }
  }

  #opened(cursor: string): void {
    clearTimeout(this.#retryTimer)
    this.#wasEverOpen = true
    this.#openedMs = monotonicMs()
    this.#heartbeat.begin(this.#openedMs)
    this.#pings = true
    this.#become({ state: 'open' })
    this.#say(this.#resumeAfter)
    this.#cursor = this.#resumeAfter ?? cursor
    this.#ask()
  }

  #tick(): void {
    if (this.#state.state !== 'open') return
    if (monotonicMs() - this.#openedMs >= steadyMs) this.#failures = 0
    if (!this.#pings) return
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
    this.#asked.push(monotonicMs())
    this.#socket?.send('{"type":"ping"}')
  }

  #ponged(at: string): void {
    const askedMs = this.#asked.shift()
    if (typeof askedMs === 'number') this.clock.read(Date.parse(at), askedMs)
  }

  /** The service did not take what was asked first of what has no answer yet. */
  #refused(error: ErrorMessage): void {
    if (this.#asked.shift() !== 'subscribe') {
      if (error.code === 'GANTRY_WS_MESSAGE') this.#pings = false
      return
    }
    if (error.code === 'GANTRY_RATE_LIMITED') {
      clearTimeout(this.#askTimer)
      this.#askTimer = setTimeout(() => this.#say(this.#resumeAfter), askAgainMs)
    } else if (error.code === 'GANTRY_CURSOR' && this.#cursor !== undefined) {
      // Of a stream that this service knows nothing of.
      this.#cursor = undefined
      this.listener.message({ type: 'gap', dropped: 0, reason: 'resume_expired' })
      this.#say(undefined)
    } else {
      this.listener.message(error)
      if (this.options.whenRefused === 'end')
        this.#fail(new GantryClientError(error.code, error.message, error.hint))
    }
  }

  #closed({ code, reason, error }: Closed): void {
    const said = error ?? closedError(code, reason)
    if (this.options.whenRefused === 'end' && this.#isFinal(code, said)) return this.#fail(said)
    this.#lost('broken', said)
  }

  /** What was open once has the right address: what answers otherwise in its place goes away. A token may be taken back at any time. */
  #isFinal(code: number, error: GantryClientError): boolean {
    if (this.#state.state === 'open') return finalCodes.has(code)
    return !error.retryable && (!this.#wasEverOpen || error.status === 401)
  }

  #lost(trouble: 'silent' | 'broken', error?: GantryClientError): void {
    const before = this.#state
    const wasOpen = before.state === 'open'
    this.#letGo()
    const boundMs = Math.min(longestRetryMs, firstRetryMs * 2 ** this.#failures)
    // A line that fell silent has been waited for long enough.
    const jitterMs = trouble === 'silent' ? 0 : Math.max(boundMs / 4, Math.random() * boundMs)
    const waitMs = Math.max(jitterMs, error?.retryAfterMs ?? 0)
    this.#failures += 1
    this.#retryTimer = setTimeout(() => this.#connect(), waitMs)
    this.#become({
      state: 'waiting',
      trouble: wasOpen ? trouble : (before.trouble ?? trouble),
      ...known({ heardMs: wasOpen ? this.#heartbeat.heardMs : before.heardMs, error }),
      retryAtMs: monotonicMs() + waitMs,
    })
  }

  #fail(error: GantryClientError): void {
    this.#end({ state: 'closed', trouble: 'broken', error })
  }

  #end(state: StreamState): void {
    if (this.#state.state === 'closed') return
    clearInterval(this.#ticker)
    this.#stopWaking?.()
    this.#letGo()
    this.#become(state)
  }

  #letGo(): void {
    clearTimeout(this.#retryTimer)
    clearTimeout(this.#askTimer)
    this.#asked = []
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #become(state: StreamState): void {
    this.#state = state
    this.listener.state(state)
  }

  #say(resumeAfter: string | undefined): void {
    this.#asked.push('subscribe')
    // Events are for a version of this package that knows them.
    const message = { type: 'subscribe', events: false, ...this.#wants, ...known({ resumeAfter }) }
    this.#socket?.send(JSON.stringify(message))
  }
}

function parsed(text: string): ServerMessage | undefined {
  try {
    return JSON.parse(text) as ServerMessage
  } catch {
    return undefined
  }
}

/** Whether a message lies behind what was handed on. Cursors are `<run>-<position>`; of another run nothing is known. */
function isAfter(cursor: string, last: string | undefined): boolean {
  const [run, position] = partsOf(cursor)
  const [lastRun, lastPosition] = partsOf(last ?? '')
  return run !== lastRun || !(position <= lastPosition)
}

function partsOf(cursor: string): readonly [string, number] {
  const dash = cursor.lastIndexOf('-')
  return [cursor.slice(0, dash), Number(cursor.slice(dash + 1))]
}

function closedError(code: number, reason: string): GantryClientError {
  const said = reason === '' ? `with ${code}` : `with ${code}: ${reason}`
  const hint = code === 1013 ? 'Read faster, or ask for less.' : 'The log of the service says more.'
  return new GantryClientError('GANTRY_CLIENT_CLOSED', `the connection was closed ${said}`, hint, {
    retryable: !finalCodes.has(code),
  })
}

/** Leaves out what is `undefined`. */
function known<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>
  }
}
