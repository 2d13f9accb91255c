import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { InternalError, RemoteError } from '../errors.js'
import { atMost } from '../lifecycle/delay.js'
import { entryPath } from '../lifecycle/entry.js'
import type { Log } from '../lifecycle/log.js'
import { byTrueName } from '../lifecycle/system-limit.js'
import type { TraceContext } from '../messages/traceparent.js'
import type { OpenSpan, SpanAttributes, SpanStart, SpanTree, Tracing } from './spans.js'
import {
  type EndedSpan,
  type FromTracingThread,
  maxHeldSpans,
  type ToTracingThread,
  type TracingStart,
} from './tracing-messages.js'

/** What has ended is gathered, so long or so much of it: a message for each costs more than what it says. */
const gathered = { ms: 250, spans: 512 } as const
const heapMb = 128
/** Of what clients write: an id of a request may be as long as they like. */
const maxTextLength = 1_024

/**
 * Draws what is traced, and hands what has ended to a thread that makes spans of it and sends them.
 *
 * The library is loaded there alone. It talks HTTP with the same code of Node that answers requests here; where both run on one loop, that code
 * is compiled for either, and each request pays for it. What is measured: `test/bench/tracing-cost.bench.ts`.
 */
export class TracingThread implements Tracing {
  readonly #worker: Worker
  readonly #started: Promise<void>
  /** Told that all is sent, in their order. */
  #flushing: (() => void)[] = []
  #held: EndedSpan[] = []
  #heldSpans = 0
  #isLosing = false
  /** It has started, and has not ended. */
  #isOpen = false
  /** The thread has not taken the last message yet. */
  #isBusy = false
  #timer: NodeJS.Timeout | undefined
  #stopping: Promise<void> | undefined

  private constructor(
    readonly start: TracingStart,
    readonly log: Log,
    entry: string,
  ) {
    this.#worker = new Worker(entry, {
      name: 'tracing',
      workerData: start,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    this.#started = new Promise((resolve, reject) => {
      this.#worker.on('message', (message: FromTracingThread) => {
        if (message.type === 'started') {
          this.#isOpen = true
          this.#worker.unref()
          resolve()
        } else if (message.type === 'failed') reject(new RemoteError(message.error))
        else this.#receive(message)
      })
      let cause: unknown
      this.#worker.on('error', (error: Error) => (cause = error))
      this.#worker.once('exit', () => {
        const error = new InternalError('the thread that sends traces ended', cause)
        reject(error)
        this.#gone(error)
      })
    })
  }

  /**
   * @param entry - another file than its own, for tests.
   * @throws GantryError where files of `tracing.tls` that were right when the settings were read are not any more, SystemLimitError
   */
  static async start(
    start: TracingStart,
    log: Log,
    entry = entryPath(import.meta.url, './tracing-worker.js'),
  ): Promise<TracingThread> {
    let thread: TracingThread | undefined
    try {
      thread = new TracingThread(start, log, entry)
      await thread.#started
      return thread
    } catch (error) {
      await thread?.stop(0)
      throw byTrueName('the thread that sends traces cannot start', error)
    }
  }

  /** By chance, not by the id that a trace would have: to make one, and look at it, costs half a microsecond of each request. */
  picks(parent?: TraceContext): boolean {
    const { followParent, sampling } = this.start.config
    if (!this.#isOpen) return false
    return parent && followParent ? parent.isSampled : Math.random() < sampling
  }

  begin({ name, kind, startMs, parent }: SpanStart): OpenSpan {
    const goesOn = parent !== undefined && this.start.config.followParent
    const digits = randomBytes(24).toString('hex')
    const [spanId, traceId] = [digits.slice(0, 16), digits.slice(16)]
    const context = goesOn ? { ...parent, spanId } : { traceId, spanId, isSampled: true }
    return {
      context,
      add: (span) => this.#hold({ ...span, kind: 'internal', within: context }),
      end: (end) =>
        this.#hold({
          ...{ name, kind, startMs, ...end, own: context },
          // Where clients are not trusted their word counts for nothing, but can be looked up.
          ...(parent !== undefined && (goesOn ? { parent } : { link: parent })),
        }),
    }
  }

  addTo(parent: TraceContext, span: SpanTree): void {
    this.#hold({ ...span, kind: 'internal', parent })
  }

  async flush(withinMs: number): Promise<void> {
    if (!this.#isOpen) return
    this.#post()
    const flushed = new Promise<void>((resolve) => this.#flushing.push(resolve))
    this.#tell({ type: 'flush' })
    await atMost(withinMs, flushed)
  }

  stop(drainMs: number): Promise<void> {
    this.#stopping ??= this.#stop(drainMs)
    return this.#stopping
  }

  async #stop(drainMs: number): Promise<void> {
    if (this.#isOpen) {
      this.#post()
      const closed = new Promise<void>((resolve) => this.#flushing.push(resolve))
      this.#tell({ type: 'close' })
      await atMost(drainMs, closed)
    }
    await this.#worker.terminate()
  }

  #hold(span: EndedSpan): void {
    const spans = spansOf(span)
    if (!this.#isOpen || this.#stopping !== undefined) return
    if (this.#heldSpans + spans > maxHeldSpans) return this.#lose()
    this.#held.push(cut(span))
    this.#heldSpans += spans
    this.#postSoon()
  }

  #lose(): void {
    if (this.#isLosing) return
    this.#isLosing = true
    this.log.warn({ held: this.#heldSpans }, 'spans are lost: more come than can be sent')
  }

  #postSoon(): void {
    if (this.#isBusy) return
    if (this.#heldSpans >= gathered.spans) this.#post()
    else if (this.#heldSpans > 0) this.#timer ??= setTimeout(() => this.#post(), gathered.ms).unref()
  }

  #post(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#held.length === 0) return
    this.#tell({ type: 'spans', spans: this.#held })
    this.#isBusy = true
    this.#held = []
    this.#heldSpans = 0
  }

  #tell(message: ToTracingThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: Exclude<FromTracingThread, { type: 'started' | 'failed' }>): void {
    switch (message.type) {
      case 'taken':
        this.#isBusy = false
        if (this.#heldSpans < gathered.spans) this.#isLosing = false
        this.#postSoon()
        return
      case 'flushed':
        this.#flushing.shift()?.()
        return
      case 'log':
        this.log[message.level](message.fields, message.text)
        return
      default:
        message satisfies never
    }
  }

  #gone(error: Error): void {
    if (this.#isOpen && this.#stopping === undefined)
      this.log.error({ err: error }, 'nothing is traced until the service starts again')
    this.#isOpen = false
    clearTimeout(this.#timer)
    this.#held = []
    for (const flushed of this.#flushing.splice(0)) flushed()
  }
}

/** It and those inside of it. */
function spansOf({ inside = [] }: SpanTree): number {
  return inside.reduce((sum, span) => sum + spansOf(span), 1)
}

function cut<Span extends SpanTree>(span: Span): Span {
  const { attributes, error, inside } = span
  return {
    ...span,
    ...(attributes && { attributes: cutTexts(attributes) }),
    ...(error !== undefined && { error: error.slice(0, maxTextLength) }),
    ...(inside && { inside: inside.map((child) => cut(child)) }),
  }
}

function cutTexts(attributes: SpanAttributes): SpanAttributes {
  const isLong = (value: unknown) => typeof value === 'string' && value.length > maxTextLength
  if (!Object.values(attributes).some(isLong)) return attributes
  const entries = Object.entries(attributes).map(
    ([name, value]) => [name, typeof value === 'string' ? value.slice(0, maxTextLength) : value] as const,
  )
  return Object.fromEntries(entries)
}
