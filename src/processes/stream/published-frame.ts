import type { PublishedText } from '../../delivery/websocket/stream-hub.js'
import { FieldReader, FieldWriter, lengthBytes, numberBytes, textBytes } from '../frame-fields.js'

/** What goes to the clients. */
export type Published = Required<PublishedText> &
  Readonly<{
    /** A picture message of the same frame. */
    picture?: Buffer
    /** Monotonic time of publishing. */
    atMs: number
  }>

/** Results of a camera that were left out, as the process did not read. */
export type LeftOut = Readonly<{ cameraId: string; results: number }>

/** Fields of a result; behind them come its text, of so many bytes, and its picture. */
export function publishedFields({ cameraId, json, position, atMs }: Published): FieldWriter {
  const fields = new FieldWriter(textBytes(cameraId) + 3 * numberBytes + lengthBytes)
  fields.text(cameraId)
  // None is left out.
  fields.number(0)
  fields.number(position)
  fields.number(atMs)
  fields.length(json.length)
  return fields
}

export function leftOutFields({ cameraId, results }: LeftOut): FieldWriter {
  const fields = new FieldWriter(textBytes(cameraId) + numberBytes)
  fields.text(cameraId)
  fields.number(results)
  return fields
}

/** @returns views of `body`. @throws FrameError for what {@link publishedFields} and {@link leftOutFields} did not make. */
export function readPublished(body: Buffer): Published | LeftOut {
  const fields = new FieldReader(body)
  const cameraId = fields.text()
  const results = fields.number()
  if (results > 0) return { cameraId, results }
  const position = fields.number()
  const atMs = fields.number()
  const json = fields.bytes(fields.length())
  const picture = fields.rest()
  return { cameraId, position, atMs, json, ...(picture.length > 0 && { picture }) }
}
