import { createRequire } from 'node:module'
import type { ReceivedSpan } from './otlp-receiver.js'

type Value = Readonly<{ stringValue?: string; boolValue?: boolean; intValue?: number; doubleValue?: number }>
type KeyValue = Readonly<{ key: string; value: Value }>
type Exported = Readonly<{
  resourceSpans?: readonly Readonly<{
    resource?: Readonly<{ attributes?: readonly KeyValue[] }>
    scopeSpans?: readonly Readonly<{ spans?: readonly ExportedSpan[] }>[]
  }>[]
}>
type ExportedSpan = Readonly<{
  traceId: Buffer
  spanId: Buffer
  parentSpanId?: Buffer
  traceState?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: readonly KeyValue[]
  links?: readonly Readonly<{ traceId: Buffer; spanId: Buffer }>[]
  status?: Readonly<{ code?: number; message?: string }>
}>
type Schema = Readonly<{
  decode(bytes: Uint8Array): unknown
  toObject(message: unknown, options: object): Exported
}>

/** What the project OpenTelemetry makes of its schema; its exporters of today write without it. */
const root = createRequire(import.meta.url)(
  '@opentelemetry/otlp-proto-exporter-base/build/src/generated/root',
) as {
  opentelemetry: { proto: { collector: { trace: { v1: { ExportTraceServiceRequest: Schema } } } } }
}
const { ExportTraceServiceRequest: schema } = root.opentelemetry.proto.collector.trace.v1

/** Spans of an `ExportTraceServiceRequest`. @throws for what is none */
export function decodeExport(bytes: Uint8Array): readonly ReceivedSpan[] {
  const message = schema.toObject(schema.decode(bytes), { longs: String, bytes: Buffer })
  return (message.resourceSpans ?? []).flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) =>
      spans.map((span) => ({
        name: span.name,
        kind: span.kind,
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: hex(span.parentSpanId),
        traceState: span.traceState ?? '',
        startMs: msOf(span.startTimeUnixNano),
        endMs: msOf(span.endTimeUnixNano),
        attributes: recordOf(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId }) => ({
          traceId: hex(traceId),
          spanId: hex(spanId),
        })),
        error: span.status?.code === 2 ? (span.status.message ?? '') : undefined,
        resource: recordOf(resource?.attributes),
      })),
    ),
  )
}

function hex(bytes: Buffer | undefined): string {
  return Buffer.from(bytes ?? []).toString('hex')
}

/** To the microsecond: nanoseconds since the epoch are more than a number holds. */
function msOf(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1_000n) / 1e3
}

function recordOf(attributes: readonly KeyValue[] = []): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue),
    ]),
  )
}
