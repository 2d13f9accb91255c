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
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { TracingConfig, TracingTarget } from '../config/tracing.js'
import type { PlainLog } from '../lifecycle/thread-log.js'
import type { TraceContext } from '../messages/traceparent.js'
import { createExporter } from './otlp-exporter.js'
import type { SpanEnd, SpanTree, TracedProcess } from './spans.js'
import { ToldExporter } from './told-exporter.js'
import { type EndedSpan, maxHeldSpans } from './tracing-messages.js'

const batch = { spans: 512, everyMs: 2_000 } as const

/** Spans of OpenTelemetry, of what has ended, and sends them in batches. */
export class OtelSpans {
  readonly #ids = new GivenIds()
  readonly #provider: TracerProvider
  readonly #tracer: OtelTracer

  private constructor(exporter: ToldExporter, config: TracingConfig & TracingTarget, who: TracedProcess) {
    this.#provider = new TracerProvider({
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
      idGenerator: this.#ids,
      spanProcessors: [
        new BatchSpanProcessor({
          exporter,
          maxQueueSize: maxHeldSpans,
          maxExportBatchSize: batch.spans,
          scheduledDelayMillis: batch.everyMs,
          exportTimeoutMillis: config.timeoutMs,
        }),
      ],
    })
    this.#tracer = this.#provider.getTracer('gantry', who.version)
  }

  /** @throws GantryError, see {@link TracingTarget} `tls` */
  static async open(
    config: TracingConfig & TracingTarget,
    who: TracedProcess,
    log: PlainLog,
  ): Promise<OtelSpans> {
    const exporter = new ToldExporter(await createExporter(config, log), config, log)
    return new OtelSpans(exporter, config, who)
  }

  take(span: EndedSpan): void {
    const { name, kind, startMs, own, within, parent, link, inside = [] } = span
    const around = parent ? spanContextOf(parent) : within && spanContextOf(within, false)
    this.#ids.given = own
    const made = this.#tracer.startSpan(
      name,
      {
        kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL,
        startTime: hrTime(startMs),
        ...(link && { links: [{ context: spanContextOf(link) }] }),
      },
      around ? trace.setSpanContext(ROOT_CONTEXT, around) : ROOT_CONTEXT,
    )
    this.#ids.given = undefined
    this.#addAll(inside, made, ROOT_CONTEXT)
    endSpan(made, startMs, span)
  }

  /** Never rejects: what cannot be sent has been told. */
  async flush(): Promise<void> {
    await this.#provider.forceFlush().catch(() => undefined)
  }

  /** Sends what there is, and ends. Never rejects. */
  async close(): Promise<void> {
    await this.#provider.shutdown().catch(() => undefined)
  }

  #addAll(inside: readonly SpanTree[], span: Span, around: Context): void {
    if (inside.length === 0) return
    const context = trace.setSpan(around, span)
    for (const child of inside) {
      const made = this.#tracer.startSpan(child.name, { startTime: hrTime(child.startMs) }, context)
      this.#addAll(child.inside ?? [], made, context)
      endSpan(made, child.startMs, child)
    }
  }
}

/** Random ids, but for a span that others were told of before it was made. */
class GivenIds implements IdGenerator {
  given: TraceContext | undefined
  readonly #random = new RandomIdGenerator()

  generateTraceId(): string {
    return this.given?.traceId ?? this.#random.generateTraceId()
  }

  generateSpanId(): string {
    return this.given?.spanId ?? this.#random.generateSpanId()
  }
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

function spanContextOf({ traceId, spanId, isSampled, state }: TraceContext, isRemote = true): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  }
}
