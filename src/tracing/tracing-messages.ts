import type { TracingConfig, TracingTarget } from '../config/tracing.js'
import type { ErrorRecord } from '../errors.js'
import type { LogMessage } from '../lifecycle/thread-log.js'
import type { TraceContext } from '../messages/traceparent.js'
import type { SpanStart, SpanTree, TracedProcess } from './spans.js'

/** Spans that wait for the thread, and as many in it, to be sent; beyond it new ones are lost. Some 2 KB each. */
export const maxHeldSpans = 2_048

/** What the thread that sends spans begins with. */
export type TracingStart = Readonly<{ config: TracingConfig & TracingTarget; who: TracedProcess }>

/** A span that has ended, as it goes to the thread. */
export type EndedSpan = SpanTree &
  Readonly<{
    kind: SpanStart['kind']
    /** What others know it by; absent: nobody does. */
    own?: TraceContext
    /** What it is inside of, of our own. */
    within?: TraceContext
    /** What it goes on with, of somebody else's. */
    parent?: TraceContext
    /** Whose request it answers where it does not go on with that trace. */
    link?: TraceContext
  }>

export type ToTracingThread =
  | Readonly<{ type: 'spans'; spans: readonly EndedSpan[] }>
  /** Answered by `flushed` once all is sent, or is lost. */
  | Readonly<{ type: 'flush' }>
  /** As `flush`; then it ends. */
  | Readonly<{ type: 'close' }>

export type FromTracingThread =
  | Readonly<{ type: 'started' }>
  /** In the place of `started`; it ends. */
  | Readonly<{ type: 'failed'; error: ErrorRecord }>
  /** The spans of a message are in its own queue. */
  | Readonly<{ type: 'taken' }>
  | Readonly<{ type: 'flushed' }>
  | LogMessage
