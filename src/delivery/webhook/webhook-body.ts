import { cloudEventAttributes, cloudEventHttpHeaders } from '../../messages/cloud-event.js'
import type { OutgoingRecord } from '../record-queue.js'

export type WebhookBody = Readonly<{ headers: Record<string, string>; body: Buffer }>

/** One CloudEvent in binary mode: its attributes are headers, its data is the body. */
export function binaryBody(record: OutgoingRecord): WebhookBody {
  return { headers: cloudEventHttpHeaders(record), body: record.value }
}

/**
 * A list of CloudEvents in JSON, of one too.
 *
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md#4-json-batch-format
 */
export function batchBody(records: readonly OutgoingRecord[]): WebhookBody {
  const parts = records.flatMap((record, index) => {
    const attributes = JSON.stringify({
      ...cloudEventAttributes(record),
      datacontenttype: 'application/json',
    })
    const head = `${index === 0 ? '' : ','}${attributes.slice(0, -1)},"data":`
    return [Buffer.from(head), record.value, Buffer.from('}')]
  })
  return {
    headers: { 'content-type': 'application/cloudevents-batch+json; charset=utf-8' },
    body: Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]),
  }
}
