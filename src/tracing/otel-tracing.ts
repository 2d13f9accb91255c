import {
  type Context,
  createTraceState,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer as OtelTracer,
} from '@opentelemetry/api'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TracingConfig, TracingTarget } from '../config/tracing.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { TraceContext } from '../messages/traceparent.js'
import { createExporter } from './otlp-exporter.js'
import type { OpenSpan, SpanEnd, SpanStart, SpanTree, TracedProcess, Tracing } from './spans.js'
import { ToldExporter } from './told-exporter.js'

/** Spans that wait to be sent; beyond it new ones are lost. Some 2 KB each. */
const maxQueuedSpans = 2_048
const batch = { spans: 512, everyMs: 2_000 } as const
/** Of what clients write: an id of a request may be as long as they like. */
const spanLimits = { attributeCountLimit: 64, attributeValueLengthLimit: 1_024 } as const

/** @throws GantryError, see {@link TracingTarget} `tls` */
export async function openOtelTracing(
  config: TracingConfig & TracingTarget,
  who: TracedProcess,
  log: Log,
): Promise<Tracing> {
  const exporter = new ToldExporter(await createExporter(config, log), config, log)
  const provider = new TracerProvider({
    // What the variable OTEL_RESOURCE_ATTRIBUTES says is the owner's, and goes over ours, but for the name, which is a setting.
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.version': who.version,
          'gantry.process': who.process,
          'gantry.pipeline': who.pipeline,
        }),
      )
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': config.serviceName })),
    sampler: new AlwaysOnSampler(),
    spanLimits,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: maxQueuedSpans,
        maxExportBatchSize: batch.spans,
        scheduledDelayMillis: batch.everyMs,
        exportTimeoutMillis: config.timeoutMs,
      }),
    ],
  })
  log.info(
    { endpoint: config.endpoint, protocol: config.protocol, sampling: config.sampling },
    'tracing by OpenTelemetry',
  )
  return new OtelTracing(provider, config.followParent, config.sampling, who.version)
}

class OtelTracing implements Tracing {
  readonly #tracer: OtelTracer

  constructor(
    readonly provider: TracerProvider,
    readonly followParent: boolean,
    readonly sampling: number,
    version: string,
  ) {
    this.#tracer = provider.getTracer('gantry', version)
  }

  /** By chance, not by the id that a trace would have: to make one, and look at it, costs half a microsecond of each request. */
  picks(parent?: TraceContext): boolean {
    return parent && this.followParent ? parent.isSampled : Math.random() < this.sampling
  }

  begin({ name, kind, startMs, parent }: SpanStart): OpenSpan {
    const far = parent && spanContextOf(parent)
    const span = this.#tracer.startSpan(
      name,
      {
        kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL,
        startTime: hrTime(startMs),
        // Where clients are not trusted their word counts for nothing, but can be looked up.
        ...(far && !this.followParent && { links: [{ context: far }] }),
      },
      far && this.followParent ? trace.setSpanContext(ROOT_CONTEXT, far) : ROOT_CONTEXT,
    )
    return new OtelSpan(this.#tracer, span, startMs)
  }

  addTo(parent: TraceContext, span: SpanTree): void {
    add(this.#tracer, trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent)), span)
  }

  async flush(withinMs: number): Promise<void> {
    await atMost(withinMs, settled(this.provider.forceFlush()))
  }

  async stop(drainMs: number): Promise<void> {
    await atMost(drainMs, settled(this.provider.shutdown()))
  }
}

class OtelSpan implements OpenSpan {
  readonly context: TraceContext
  readonly #inside: Context

  constructor(
    readonly tracer: OtelTracer,
    readonly span: Span,
    readonly startMs: number,
  ) {
    const { traceId, spanId } = span.spanContext()
    this.context = { traceId, spanId, isSampled: true }
    this.#inside = trace.setSpan(ROOT_CONTEXT, span)
  }

  add(inside: SpanTree): void {
    add(this.tracer, this.#inside, inside)
  }

  end(end: SpanEnd): void {
    endSpan(this.span, this.startMs, end)
  }
}

function add(tracer: OtelTracer, parent: Context, { name, startMs, inside = [], ...end }: SpanTree): void {
  const span = tracer.startSpan(name, { startTime: hrTime(startMs) }, parent)
  if (inside.length > 0) {
    const context = trace.setSpan(parent, span)
    for (const child of inside) add(tracer, context, child)
  }
  endSpan(span, startMs, end)
}

function endSpan(span: Span, startMs: number, { endMs, attributes, error }: SpanEnd): void {
  if (attributes !== undefined) span.setAttributes(attributes)
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
  span.end(hrTime(Math.max(startMs, endMs)))
}

/** A number would be taken for time since the start of the process where it is before that. */
function hrTime(ms: number): HrTime {
  const us = Math.round(ms * 1e3)
  return [Math.floor(us / 1e6), (us % 1e6) * 1e3]
}

function spanContextOf({ traceId, spanId, isSampled, state }: TraceContext): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  }
}

/** What cannot be sent has been told already. */
function settled(work: Promise<void>): Promise<void> {
  return work.catch(() => undefined)
}
