import type { ResultCache } from '../../cache/result-cache.js'
import { queuedRecord } from '../../delivery/outbox-queue.js'
import type { ResultSink } from '../../delivery/result-sink.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { eventTypes } from '../../messages/cloud-event.js'
import type { DetectionsText } from '../../messages/detections-json.js'
import type { GapMessage } from '../../messages/gap-message.js'
import type { RecordStore } from '../../store/record-store.js'
import { streamPosition, type Gap, type PlacedRecord, type StoreRecord } from '../../store/record.js'
import type { StreamProcess } from '../stream/stream-process.js'
import type { FrameTrace, FrameTraces } from './frame-traces.js'

/** At the end, for spans that are left: however long sinks took, and however long whoever takes spans would take. */
const traceMs = { least: 500, most: 2_000 } as const

export type OutletParts = Readonly<{
  store: RecordStore
  cache: ResultCache
  sinks: readonly ResultSink[]
  stream: StreamProcess
  /** Of this run; part of the ids of what it says itself. */
  epoch: string
  /** Absent: nothing is traced. */
  traces?: FrameTraces | undefined
}>

/** The one door out of the service: what goes through it is stored, and then told to viewers, cache and sinks in the same order. */
export class Outlet {
  #gaps = 0

  constructor(readonly parts: OutletParts) {
    parts.store.onGap = (gap) => this.#tellGap(gap)
    const { traces } = parts
    if (traces === undefined) return
    for (const sink of parts.sinks)
      sink.onSettled = (record, end) => traces.settled(sink.health.name, record, end)
  }

  /** Resolves once the store is there, or cannot be. Never rejects. */
  async start(): Promise<void> {
    this.parts.cache.start()
    await this.parts.store.start()
    this.parts.stream.begin(streamPosition(this.parts.store.newest))
    for (const sink of this.parts.sinks) sink.start()
  }

  /** A result of a camera, with the picture that somebody wants to see. */
  publish(id: string, text: DetectionsText, picture: Buffer | undefined, trace?: FrameTrace): void {
    const { cameraId, seq, capturedAtMs: timeMs, json: value } = text
    const record: StoreRecord = { id, type: eventTypes.detections, cameraId, seq, timeMs, value }
    this.parts.store.accept(record, (placed, isStored) => {
      if (trace !== undefined) this.#traced(id, trace, isStored)
      this.parts.stream.publish({ cameraId, json: value, position: streamPosition(placed.position) }, picture)
      this.parts.cache.put(text)
      this.#toSinks(placed, isStored)
    })
  }

  /** An event: it is on the disk before anybody is told. @param gap - that it tells. */
  publishEvent(record: StoreRecord, gap?: Gap): void {
    this.parts.store.accept(record, (placed, isStored) => this.#toSinks(placed, isStored), gap)
  }

  /** What was published is delivered, for so long at most; what is stored and was not is left for the next start. Never rejects. */
  async stop(drainMs: number): Promise<void> {
    const { store, sinks, stream } = this.parts
    const deadline = new Deadline(drainMs)
    await store.drain(deadline.leftMs)
    await Promise.all([...sinks.map((sink) => sink.stop(deadline.leftMs)), stream.stop()])
    await store.stop()
    await this.parts.traces?.stop(Math.min(Math.max(deadline.leftMs, traceMs.least), traceMs.most))
  }

  #traced(id: string, trace: FrameTrace, isStored: boolean): void {
    trace.committed(isStored)
    this.parts.traces?.publish(
      id,
      trace,
      this.parts.sinks.map(({ health }) => health.name),
    )
  }

  #toSinks(record: PlacedRecord, isStored: boolean): void {
    const queued = queuedRecord(record, isStored, nowMs())
    for (const sink of this.parts.sinks) sink.accept(queued)
  }

  #tellGap(gap: Gap): void {
    const { sink, cameraId, dropped, fromMs, toMs, reason } = gap
    const message: GapMessage = {
      ...{ cameraId, sink, dropped, reason },
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
    }
    this.publishEvent(
      {
        id: `${cameraId}/${this.parts.epoch}/gap/${sink}/${(this.#gaps += 1)}`,
        type: eventTypes.gap,
        cameraId,
        seq: 0,
        timeMs: wallMs(),
        value: Buffer.from(JSON.stringify(message)),
        sink,
      },
      gap,
    )
  }
}
