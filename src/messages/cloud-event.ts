/** Types of the records Gantry emits; the version is part of the type. */
export const eventTypes = {
  detections: 'gantry.detections.v1',
  events: 'gantry.events.v1',
  /** Records that a sink did not get. */
  gap: 'gantry.gap.v1',
  /** A stretch of a camera's time that has ended, watched or blind. */
  coverage: 'gantry.coverage.v1',
} as const
export type EventType = (typeof eventTypes)[keyof typeof eventTypes]

/** Version of the schema of each type; a minor one adds fields. */
const schemaVersions: Readonly<Record<EventType, string>> = {
  'gantry.detections.v1': '1.2',
  'gantry.events.v1': '1.0',
  'gantry.gap.v1': '1.0',
  'gantry.coverage.v1': '1.0',
}

/** What a record is, as CloudEvents calls it. */
export type EventRecord = Readonly<{
  /** Stable across retries of the same record. */
  id: string
  type: EventType
  cameraId: string
  /** UTC time of capture, RFC 3339. */
  time: string
  /** Of the frame, where it is traced: the span that the record belongs to. */
  traceparent?: string | undefined
}>

/**
 * Attributes of CloudEvents 1.0, one of ours and that of its extension for traces, without the type of the data, which each protocol has a
 * place of its own for.
 *
 * @see https://github.com/cloudevents/spec/blob/main/cloudevents/extensions/distributed-tracing.md
 */
export function cloudEventAttributes({ id, type, cameraId, time, traceparent }: EventRecord) {
  const source = `/cameras/${encodeURIComponent(cameraId)}`
  return {
    ...({ specversion: '1.0', id, type, source, time, schemaversion: schemaVersions[type] } as const),
    ...(traceparent !== undefined && { traceparent }),
  }
}

/**
 * Headers of CloudEvents 1.0 in Kafka's binary content mode.
 *
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
 */
export function cloudEventHeaders(record: EventRecord): Record<string, string> {
  return { ...withPrefix('ce_', record), ...traceHeader(record), 'content-type': 'application/json' }
}

/**
 * The same for HTTP. No attribute of ours has a character that a header cannot hold.
 *
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
 */
export function cloudEventHttpHeaders(record: EventRecord): Record<string, string> {
  return { ...withPrefix('ce-', record), ...traceHeader(record), 'content-type': 'application/json' }
}

/** By its own name too, under which libraries that trace consumers and servers look for it. */
function traceHeader({ traceparent }: EventRecord): { traceparent?: string } {
  return traceparent === undefined ? {} : { traceparent }
}

function withPrefix(prefix: string, record: EventRecord): Record<string, string> {
  const attributes = Object.entries(cloudEventAttributes(record))
  return Object.fromEntries(attributes.map(([name, value]) => [`${prefix}${name}`, value]))
}

/**
 * Id of the record of one frame: the same for every retry, different after a restart of the service and for a camera that was removed
 * and added again, in which frame numbers begin anew.
 *
 * @param epoch - id of this run of the service.
 * @param life - number of the camera among those added in this run; 0 for those of its start.
 */
export function detectionsRecordId(
  epoch: string,
  life: number,
  { cameraId, seq }: Readonly<{ cameraId: string; seq: number }>,
): string {
  return `${cameraId}/${epoch}${life === 0 ? '' : `.${life}`}/${seq}`
}
