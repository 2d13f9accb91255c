import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { filterOf, keepAll } from '../../src/delivery/message-filter.js'
import { Rendering } from '../../src/delivery/websocket/rendering.js'
import { serverFrame } from '../../src/delivery/websocket/server-frame.js'
import {
  closedDetectionsJson,
  openDetectionsJson,
  type OpenDetections,
} from '../../src/messages/detections-json.js'
import { readResult, resultFields } from '../../src/processes/engine/result-frame.js'
import { FrameSplitter } from '../../src/processes/frames.js'
import { publishedFields, readPublished } from '../../src/processes/stream/published-frame.js'
import { emptyFrameCounts } from '../../src/vision/accounting.js'

/**
 * Results, and what the code before decision 9 made of them: the text of Kafka and the cache, and that of a viewer, who wants all or filters.
 */
type Recorded = Readonly<{
  name: string
  open: OpenDetections
  captureToPublishMs: number
  text: string
  sent: string
  filtered: readonly Readonly<{ labels: readonly string[]; minScore: number; text: string }>[]
}>
const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, '../golden/results.json'), 'utf8'),
) as readonly Recorded[]

/** What arrives of a frame that is sent. */
function carried(frame: Buffer, ...rest: readonly Buffer[]): Buffer {
  const bodies: Buffer[] = []
  new FrameSplitter((_, body) => bodies.push(body)).read(Buffer.concat([frame, ...rest]))
  return bodies[0] ?? Buffer.alloc(0)
}

const asSent = (text: string) => serverFrame('text', Buffer.from(text))

it.each(recorded.map((each, index) => [each.name, each, index] as const))(
  '%s: every consumer gets the bytes that it got when they were made where they left',
  (_, { open, captureToPublishMs, text, sent, filtered }, index) => {
    const { cameraId, seq, capturedAt, frame, model } = open
    const left = resultFields({
      cameraId,
      seq,
      capturedAtMs: Date.parse(capturedAt),
      arrivedMs: 1,
      source: frame,
      model: model.name,
      labels: [],
      decodeGapsMs: [],
      counts: emptyFrameCounts(),
      text: openDetectionsJson(open),
    })
    const json = closedDetectionsJson(readResult(carried(left.frame(0))).text, captureToPublishMs)
    expect(json.equals(Buffer.from(text))).toBe(true)
    const published = publishedFields({ position: 1, cameraId, json, atMs: 1 })
    const arrived = readPublished(carried(published.frame(json.length), json))
    if (!('json' in arrived)) throw new Error('it was left out')
    const rendering = new Rendering(`e1-${index + 1}`, arrived.json)
    expect(rendering.for(keepAll).equals(asSent(sent))).toBe(true)
    for (const { text: wanted, ...filter } of filtered)
      expect(rendering.for(filterOf({ ...filter, labels: [...filter.labels] })).equals(asSent(wanted))).toBe(
        true,
      )
  },
)
