import { describe, expect, it } from 'vitest'
import {
  closedDetectionsJson,
  messageOfJson,
  openDetectionsJson,
  traceparentInJson,
} from '../../src/messages/detections-json.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { detectionsMessage } from '../support/detections.js'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function open(): Buffer {
  const { timingsMs, ...message } = detectionsMessage()
  const { captureToPublish: _, ...timings } = timingsMs
  return Buffer.from(openDetectionsJson({ ...message, timingsMs: timings }))
}

describe('the text of a message', () => {
  it('has the trace of its frame as last field, where it is traced', () => {
    const json = closedDetectionsJson(open(), 12.5, { traceparent })
    const message = detectionsMessageSchema.parse(messageOfJson(json))
    expect(Object.keys(message).at(-1)).toBe('traceparent')
    expect(message).toMatchObject({ traceparent, timingsMs: { captureToPublish: 12.5 } })
    expect(traceparentInJson(json)).toBe(traceparent)
  })

  it('has none where it is not', () => {
    const json = closedDetectionsJson(open(), 12.5)
    expect(messageOfJson(json)).not.toHaveProperty('traceparent')
    expect(traceparentInJson(json)).toBeUndefined()
  })

  it.each([
    ['nothing', ''],
    ['a short event', '{"a":"}'],
    ['an event that ends in a text', `{"cameraId":"${'x'.repeat(80)}"}`],
    ['a text that looks like one', `{"a":{"b":",\\"traceparent\\":\\"${traceparent}"}}`],
  ])('%s has none', (_, json) => {
    expect(traceparentInJson(Buffer.from(json))).toBeUndefined()
  })

  it('keeps it where a filter leaves detections out', () => {
    const message = messageOfJson(closedDetectionsJson(open(), 1, { traceparent }))
    expect(traceparentInJson(Buffer.from(JSON.stringify({ ...message, detections: [] })))).toBe(traceparent)
  })
})
