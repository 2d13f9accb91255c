import type { Service } from '../lifecycle/service.js'
import type { TraceContext } from '../messages/traceparent.js'

/** Who sends the spans. */
export type TracedProcess = Readonly<{
  process: 'control' | 'model-server'
  /** `name` of the pipeline file. */
  pipeline: string
  version: string
}>

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** A stretch of time that has passed, with those inside of it. Times are wall time in milliseconds, with fractions. */
export type SpanTree = Readonly<{
  name: string
  startMs: number
  /** One before `startMs` counts as that. */
  endMs: number
  attributes?: SpanAttributes
  /** Why it failed, for people; absent: it did not. */
  error?: string
  inside?: readonly SpanTree[]
}>

/** What is told of a span where it ends. */
export type SpanEnd = Pick<SpanTree, 'endMs' | 'attributes' | 'error'>

/** A span that is traced and has not ended. */
export interface OpenSpan {
  readonly context: TraceContext
  /** Something inside of it that has passed. */
  add(inside: SpanTree): void
  /** Once. */
  end(end: SpanEnd): void
}

export type SpanStart = Readonly<{
  name: string
  /** `server` answers somebody's request. */
  kind: 'server' | 'internal'
  /** Wall time in milliseconds. */
  startMs: number
  /** Whose trace it goes on with; absent: it begins one. */
  parent?: TraceContext | undefined
}>

/**
 * Traces by OpenTelemetry. Nothing of it waits for whoever collects them: spans are held in memory, up to a bound, and sent in batches;
 * what finds no room, or nobody who takes it, is lost.
 */
export interface Tracing extends Service {
  /**
   * Whether what comes now is traced; asked once for each, before anything is prepared for a span.
   *
   * @param parent - whose trace it would go on with, and who then decides.
   */
  picks(parent?: TraceContext): boolean
  /** Of what was picked. */
  begin(start: SpanStart): OpenSpan
  /** A span of a trace whose other spans have ended, perhaps in another process. */
  addTo(parent: TraceContext, span: SpanTree): void
  /** Sends what there is, for so long at most. Never rejects. */
  flush(withinMs: number): Promise<void>
}
