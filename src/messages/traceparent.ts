/** A span of somebody's trace, as W3C Trace Context writes it. */
export type TraceContext = Readonly<{
  /** 32 hexadecimal digits, not all of them 0. */
  traceId: string
  /** 16 of them: the span that what comes now happens in. */
  spanId: string
  isSampled: boolean
  /** `tracestate` as it came; absent: none. */
  state?: string
}>

/** Headers of a request as they came, not checked. */
export type TraceHeaders = Readonly<{ traceparent?: string | undefined; tracestate?: string | undefined }>

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const [noTrace, noSpan] = ['0'.repeat(32), '0'.repeat(16)]
/** What everybody has to carry; a longer one may be left out. */
const maxStateLength = 512

/** Length of {@link traceparentOf}. */
export const traceparentLength = 55

/**
 * Whom a request belongs to. What is not right is as if it had not come, and takes `tracestate` along: the standard has no error for it.
 *
 * @see https://www.w3.org/TR/trace-context/#traceparent-header
 */
export function readTraceHeaders({ traceparent, tracestate }: TraceHeaders): TraceContext | undefined {
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = form.exec(traceparent ?? '') ?? []
  // A later version may say more behind its flags; this one may not, and `ff` is none.
  if (version === '' || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (traceId === noTrace || spanId === noSpan) return undefined
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1
  const hasState = tracestate !== undefined && tracestate !== '' && tracestate.length <= maxStateLength
  return { traceId, spanId, isSampled, ...(hasState && { state: tracestate }) }
}

/** As a header or an attribute of a CloudEvent says it. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}
