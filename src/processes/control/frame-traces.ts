import type { EngineResult } from '../../cameras/engine-report.js'
import type { QueuedRecord } from '../../delivery/record-queue.js'
import type { RecordEnd } from '../../delivery/result-sink.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import type { Service } from '../../lifecycle/service.js'
import { readTraceHeaders, traceparentOf } from '../../messages/traceparent.js'
import type { OpenSpan, SpanTree, Tracing } from '../../tracing/spans.js'

/** Frames whose sinks are waited for; of more, the oldest are ended. */
const maxOpen = 512
/** A trace that ends later than this is of no use to whoever looks at it: a sink that is away gets a span of its own then. */
const openAtMostMs = 30_000
const lookMs = 5_000

type OpenFrame = Readonly<{ trace: FrameTrace; waiting: Set<string> }>

/**
 * Traces of frames from their capture to the delivery of their record. A frame is a trace, which begins where the frame arrived and ends
 * with the last sink; all its times are those that the engine measured. Frames that end without a record have none.
 */
export class FrameTraces implements Service {
  /** By the id of the record, oldest first. */
  readonly #open = new Map<string, OpenFrame>()
  readonly #timer: NodeJS.Timeout

  constructor(readonly tracing: Tracing) {
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
  }

  /** @returns undefined for a frame that is not traced. */
  begin(result: EngineResult, captureToPublishMs: number): FrameTrace | undefined {
    if (!this.tracing.picks()) return undefined
    const span = this.tracing.begin({ name: 'frame', kind: 'internal', startMs: result.capturedAtMs })
    return new FrameTrace(span, result, captureToPublishMs)
  }

  /** The record of a frame goes to these sinks from here on. */
  publish(id: string, trace: FrameTrace, sinks: readonly string[]): void {
    if (sinks.length === 0) return trace.end()
    this.#open.set(id, { trace, waiting: new Set(sinks) })
    const [oldest] = this.#open
    if (this.#open.size > maxOpen && oldest !== undefined) this.#close(...oldest)
  }

  /** A sink needs the record no more. Costs nothing for one whose frame is not traced. */
  settled(sink: string, record: QueuedRecord, end: RecordEnd): void {
    if (record.traceparent === undefined) return
    const open = this.#open.get(record.id)
    const wallBehindMs = open?.trace.wallBehindMs ?? wallMs() - nowMs()
    const span = deliverySpan(sink, record, end, wallBehindMs)
    if (open?.waiting.delete(sink) === true) {
      if (span !== undefined) open.trace.span.add(span)
      if (open.waiting.size === 0) this.#close(record.id, open)
      return
    }
    const parent = readTraceHeaders(record)
    if (parent !== undefined && span !== undefined) this.tracing.addTo(parent, span)
  }

  async stop(drainMs: number): Promise<void> {
    clearInterval(this.#timer)
    for (const [id, open] of this.#open) this.#close(id, open)
    await this.tracing.stop(drainMs)
  }

  #look(): void {
    const now = nowMs()
    for (const [id, open] of this.#open) {
      if (now - open.trace.result.arrivedMs < openAtMostMs) return
      this.#close(id, open)
    }
  }

  #close(id: string, { trace, waiting }: OpenFrame): void {
    this.#open.delete(id)
    trace.end([...waiting])
  }
}

/** One frame that is traced, as it leaves. */
export class FrameTrace {
  /** For whoever goes on with the trace. */
  readonly traceparent: string
  /** What is added to a time of the monotonic clock: the frame has one of both clocks. */
  readonly wallBehindMs: number

  constructor(
    readonly span: OpenSpan,
    readonly result: EngineResult,
    readonly captureToPublishMs: number,
  ) {
    this.traceparent = traceparentOf(span.context)
    this.wallBehindMs = result.capturedAtMs - result.arrivedMs
    for (const stage of stagesOf(result, captureToPublishMs)) span.add(stage)
  }

  /** Everybody may be told now. */
  committed(isStored: boolean): void {
    this.span.add({
      name: 'commit',
      startMs: this.result.capturedAtMs + this.captureToPublishMs,
      endMs: this.#now(),
      attributes: { 'gantry.stored': isStored },
    })
  }

  /** @param undelivered - sinks that do not have the record yet. */
  end(undelivered: readonly string[] = []): void {
    const { cameraId, seq, model, run, labels, decodeGapsMs } = this.result
    const gapMs = decodeGapsMs.at(-1)
    this.span.end({
      endMs: this.#now(),
      attributes: {
        'gantry.camera.id': cameraId,
        'gantry.frame.seq': seq,
        'gantry.model.name': model,
        'gantry.detections': labels.reduce((sum, [, detections]) => sum + detections, 0),
        'gantry.frame.reused': run === undefined,
        ...(gapMs !== undefined && { 'gantry.decode.gap_ms': gapMs }),
        ...(undelivered.length > 0 && { 'gantry.undelivered': undelivered.join(',') }),
      },
    })
  }

  #now(): number {
    return nowMs() + this.wallBehindMs
  }
}

/** Stages follow each other from the arrival on; what the engine and the way to here took beside them comes last. */
function stagesOf({ capturedAtMs, run }: EngineResult, captureToPublishMs: number): readonly SpanTree[] {
  const publishedMs = capturedAtMs + captureToPublishMs
  let atMs = capturedAtMs
  const stage = (name: string, forMs: number): SpanTree => {
    const startMs = atMs
    atMs = Math.min(publishedMs, atMs + forMs)
    return { name, startMs, endMs: atMs }
  }
  if (run === undefined) return [stage('publish', captureToPublishMs)]
  const { queue, infer, postprocess } = run.timingsMs
  return [
    stage('queue', queue),
    { ...stage('infer', infer), attributes: { 'gantry.batch.size': run.batchSize } },
    stage('postprocess', postprocess),
    stage('publish', captureToPublishMs),
  ]
}

/** From its acceptance to the word of the far side; none for a record that was not for it. */
function deliverySpan(
  sink: string,
  { acceptedMs }: QueuedRecord,
  end: RecordEnd,
  wallBehindMs: number,
): SpanTree | undefined {
  if (end === 'filtered' || end === 'over_limit') return undefined
  return {
    name: `deliver ${sink}`,
    startMs: acceptedMs + wallBehindMs,
    endMs: nowMs() + wallBehindMs,
    attributes: { 'gantry.sink': sink, 'gantry.delivery': end },
    ...(end !== 'delivered' && { error: end }),
  }
}
