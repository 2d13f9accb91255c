import type { KafkaConfig } from '../../../config/outputs.js'
import { KafkaLinks } from '../../../delivery/kafka/kafka-link.js'
import type { RecordLink } from '../../../delivery/record-link.js'
import type { OutgoingRecord } from '../../../delivery/record-queue.js'
import { nowMs } from '../../../lifecycle/clock.js'
import { delay } from '../../../lifecycle/delay.js'
import type { Log } from '../../../lifecycle/log.js'
import { detectionsRecordId, eventTypes } from '../../../messages/cloud-event.js'
import type { DetectionsMessage } from '../../../messages/detections-message.js'
import type { BatchLine } from '../../../messages/batch-line.js'
import type { BatchOutput, ScoredItem, RefusedResult } from './batch-output.js'

const sendDeadlineMs = 30_000
const firstWaitMs = 200
const longestWaitMs = 5_000

export type KafkaOutputOptions = Readonly<{
  config: KafkaConfig
  /** In the id of each record, so that one that comes twice can be dropped. */
  runId: string
  /** How long brokers may be away before the run stops. */
  patienceMs: number
  log: Log
}>

type Waiting = Readonly<{ line: BatchLine; record: OutgoingRecord }>

/**
 * Records as those of cameras, by the type {@link eventTypes}: each file is a camera, named by its path, whose frames count from 1. A
 * record that was sent and not yet counted is sent again by the run that goes on, with the same id.
 */
export class KafkaOutput implements BatchOutput {
  readonly #links: KafkaLinks
  readonly #stop = new AbortController()
  #link: RecordLink | undefined
  #waiting: Waiting[] = []
  #waitingBytes = 0

  constructor(readonly options: KafkaOutputOptions) {
    this.#links = new KafkaLinks(options.config, options.log)
  }

  /** So that brokers which are not there are told before a picture is scored. @throws KafkaUnavailableError */
  async open(): Promise<void> {
    this.#link = await this.#links.open(this.#stop.signal, false)
  }

  add(result: ScoredItem): void {
    const record = recordOf(result, this.options.runId)
    this.#waiting.push({ line: result.line, record })
    this.#waitingBytes += record.value.length
  }

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  async flush(): Promise<{ bytes: number; refused: readonly RefusedResult[] }> {
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    const refused: RefusedResult[] = []
    const { maxBatchRecords } = this.options.config
    for (let at = 0; at < waiting.length; at += maxBatchRecords)
      refused.push(...(await this.#send(waiting.slice(at, at + maxBatchRecords))))
    return { bytes: 0, refused }
  }

  complete(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#stop.abort()
    this.#link?.close()
    this.#link = undefined
    return Promise.resolve()
  }

  /** Halves what the brokers refuse until the record at fault stands alone. @throws KafkaUnavailableError */
  async #send(waiting: readonly Waiting[]): Promise<readonly RefusedResult[]> {
    const { left, reason } = await this.#sent(waiting)
    const [only] = left
    if (reason === undefined || only === undefined) return []
    if (left.length === 1) return [{ line: only.line, reason }]
    const half = Math.ceil(left.length / 2)
    return [...(await this.#send(left.slice(0, half))), ...(await this.#send(left.slice(half)))]
  }

  /** @returns what the brokers refuse for good, and why; nothing when they have all. */
  async #sent(waiting: readonly Waiting[]): Promise<{ left: readonly Waiting[]; reason?: string }> {
    const untilMs = nowMs() + this.options.patienceMs
    const taken = new Set<OutgoingRecord>()
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(longestWaitMs, 2 * waitMs)) {
      const left = waiting.filter(({ record }) => !taken.has(record))
      try {
        this.#link ??= await this.#links.open(this.#stop.signal, waitMs > firstWaitMs)
        const records = left.map(({ record }) => record)
        await this.#link.send(records, sendDeadlineMs, (some) => some.forEach((record) => taken.add(record)))
        return { left: [] }
      } catch (error) {
        const { refusal, reason } = this.#links.failureOf(error)
        if (refusal?.certain === true)
          return { left: left.filter(({ record }) => !taken.has(record)), reason }
        // A producer is not used after a failed send: see KafkaLinks.
        this.#link?.close()
        this.#link = undefined
        if (nowMs() + waitMs > untilMs) throw error
        await delay(waitMs, this.#stop.signal)
      }
    }
  }
}

function recordOf({ line, capturedAtMs, inferMs }: ScoredItem, runId: string): OutgoingRecord {
  const { file, frame = 1, timeMs = 0, widthPx, heightPx, quality, model, detections } = line
  const time = new Date(capturedAtMs).toISOString()
  const message: DetectionsMessage = {
    cameraId: file,
    seq: frame,
    capturedAt: time,
    ptsMs: timeMs,
    frame: { widthPx, heightPx, quality },
    model,
    detections,
    timingsMs: { queue: 0, infer: inferMs, postprocess: 0, captureToPublish: inferMs },
  }
  return {
    id: detectionsRecordId(runId, 0, message),
    type: eventTypes.detections,
    cameraId: file,
    time,
    value: Buffer.from(JSON.stringify(message)),
  }
}
