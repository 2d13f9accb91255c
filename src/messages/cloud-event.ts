/** Types of the records Gantry emits; the version is part of the type. */
export const eventTypes = {
  detections: 'gantry.detections.v1',
  events: 'gantry.events.v1',
  /** Records that a sink did not get. */
  gap: 'gantry.gap.v1',
} as const
export type EventType = (typeof eventTypes)[keyof typeof eventTypes]

/** Version of the schema of each type; a minor one adds fields. */
const schemaVersions: Readonly<Record<EventType, string>> = {
  'gantry.detections.v1': '1.1',
  'gantry.events.v1': '1.0',
  'gantry.gap.v1': '1.0',
}

/**
 * Headers of CloudEvents 1.0 in Kafka's binary content mode.
 *
 * @param id - stable across retries of the same record.
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
 */
export function cloudEventHeaders(record: {
  id: string
  type: EventType
  cameraId: string
  time: string
}): Record<string, string> {
  return {
    ce_specversion: '1.0',
    ce_id: record.id,
    ce_type: record.type,
    ce_source: `/cameras/${encodeURIComponent(record.cameraId)}`,
    ce_time: record.time,
    ce_schemaversion: schemaVersions[record.type],
    'content-type': 'application/json',
  }
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
