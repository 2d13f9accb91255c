import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { readTraceHeaders } from '../../messages/traceparent.js'
import type { SpanTree, Tracing } from '../../tracing/spans.js'
import type { Arrival } from '../infer.js'
import type { RequestTrace } from './request-trace.js'

/** Parts of the time of a request in a model, by the timestamps that they lie between. */
const parts = [
  ['queue', 'QUEUE_START', 'COMPUTE_START'],
  ['compute input', 'COMPUTE_START', 'COMPUTE_INPUT_END'],
  ['compute infer', 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START'],
  ['compute output', 'COMPUTE_OUTPUT_START', 'COMPUTE_END'],
] as const

/** Of the protocols: parts of the time around the model. */
const around = {
  HTTP: { receive: 'HTTP_RECV', send: 'HTTP_SEND' },
  GRPC: { receive: 'GRPC_WAITREAD', send: 'GRPC_SEND' },
} as const

const route = '/v2/models/{model}/infer'
const service = 'inference.GRPCInferenceService'

/** Requests of API clients as spans, of what their traces hold. */
export class RequestSpans {
  constructor(readonly tracing: Tracing) {}

  /** @returns undefined for a request that is not traced; else it is to be called once it is answered. */
  begin(arrival: Arrival | undefined): ((trace: RequestTrace) => void) | undefined {
    const { protocol = 'HTTP', startedMs = nowMs(), isStreamed = false, traceHeaders } = arrival ?? {}
    const parent = traceHeaders?.traceparent === undefined ? undefined : readTraceHeaders(traceHeaders)
    if (!this.tracing.picks(parent)) return undefined
    // Times of a trace are of the monotonic clock.
    const wallBehindMs = wallMs() - nowMs()
    const method = isStreamed ? 'ModelStreamInfer' : 'ModelInfer'
    const span = this.tracing.begin({
      name: protocol === 'HTTP' ? `POST ${route}` : `${service}/${method}`,
      kind: 'server',
      startMs: startedMs + wallBehindMs,
      parent,
    })
    return (trace) => {
      const { receive, send } = around[protocol]
      const inside = [
        ...partOf(trace, 'receive', `${receive}_START`, `${receive}_END`),
        ...modelSpan(trace),
        ...partOf(trace, 'send', `${send}_START`, `${send}_END`),
      ]
      for (const part of inside) span.add(moved(part, wallBehindMs))
      const { model, version, requestId } = trace.head
      span.end({
        endMs: nowMs() + wallBehindMs,
        attributes: {
          ...(protocol === 'HTTP'
            ? { 'http.request.method': 'POST', 'http.route': route }
            : { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method }),
          'gantry.model.name': model,
          'gantry.model.version': version,
          ...(requestId !== '' && { 'gantry.request.id': requestId }),
        },
        ...(trace.error !== undefined && { error: trace.error }),
      })
    }
  }
}

/** Of a model, with those of the steps of an ensemble. Times are of the monotonic clock. */
function modelSpan(trace: RequestTrace): readonly SpanTree[] {
  const { model, version } = trace.head
  return partOf(trace, `model ${model}`, 'REQUEST_START', 'REQUEST_END').map((span) => ({
    ...span,
    attributes: { 'gantry.model.name': model, 'gantry.model.version': version },
    ...(trace.error !== undefined && { error: trace.error }),
    inside: [
      ...parts.flatMap(([name, from, to]) => partOf(trace, name, from, to)),
      ...trace.steps.flatMap((step) => modelSpan(step)),
    ],
  }))
}

/** None where one of both did not happen, or where it took no time at all: gRPC does not tell when a message began to come. */
function partOf(trace: RequestTrace, name: string, from: string, to: string): readonly SpanTree[] {
  const [startMs, endMs] = [trace.timeOf(from), trace.timeOf(to)]
  return startMs === undefined || endMs === undefined || startMs === endMs ? [] : [{ name, startMs, endMs }]
}

function moved({ startMs, endMs, inside = [], ...span }: SpanTree, byMs: number): SpanTree {
  return {
    ...span,
    startMs: startMs + byMs,
    endMs: endMs + byMs,
    inside: inside.map((child) => moved(child, byMs)),
  }
}
