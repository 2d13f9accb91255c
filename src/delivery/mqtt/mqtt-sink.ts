import { DeliverySink, type DeliverySinkMetrics } from '../delivery-sink.js'
import { defaultDelivery } from '../delivery.js'
import { RecordFilter } from '../record-filter.js'
import type { QueuedRecord, RecordQueue } from '../record-queue.js'
import type { ResultSink, SinkHealth } from '../result-sink.js'
import { type BoardCamera, CameraBoard } from './camera-board.js'
import { MqttLinks, type MqttParts } from './mqtt-link.js'
import { MqttTopics } from './mqtt-topics.js'
import { RetainedTopics } from './retained-topics.js'

/** How often what is retained is compared with what is so: nobody needs a count of people more often. */
const lookMs = 1_000
const backoff = { baseMs: 500, capMs: 30_000 }

const words = {
  up: 'mqtt up',
  down: 'mqtt down, retrying',
  refused: 'mqtt broker refuses records for good',
} as const

export type MqttSinkParts = MqttParts &
  Readonly<{
    version: string
    /** All cameras there are, as they stand now. */
    cameras: () => readonly BoardCamera[]
  }>

/** Records to a broker of MQTT 5, and beside them, retained, how each camera stands. */
export class MqttSink implements ResultSink {
  readonly #inner: DeliverySink
  readonly #board: CameraBoard
  readonly #retained = new RetainedTopics()
  readonly #cameras: () => readonly BoardCamera[]
  #timer: NodeJS.Timeout | undefined

  constructor(parts: MqttSinkParts, queue: RecordQueue, metrics: DeliverySinkMetrics) {
    const { name, config } = parts.mqtt
    const { topicPrefix, discoveryPrefix, homeAssistant, timeoutMs, maxInFlight } = config
    const topics = new MqttTopics(topicPrefix)
    const filter = new RecordFilter(config.filter)
    const discovery = { discoveryPrefix, topics, version: parts.version }
    this.#cameras = parts.cameras
    this.#board = new CameraBoard(this.#retained, filter, discovery, homeAssistant)
    const settings = {
      ...defaultDelivery,
      backoff,
      sendDeadlineMs: timeoutMs,
      maxSendDeadlineMs: timeoutMs,
      maxBatchRecords: maxInFlight,
      lingerMs: 0,
    }
    const links = new MqttLinks(parts, topics, this.#retained)
    this.#inner = new DeliverySink({ name, queue, links, settings, filter, words }, metrics, parts.log)
  }

  get health(): SinkHealth {
    return this.#inner.health
  }

  set onSettled(told: ResultSink['onSettled']) {
    this.#inner.onSettled = told
  }

  start(): void {
    this.#look()
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
    this.#inner.start()
  }

  accept(record: QueuedRecord): void {
    this.#board.saw(record)
    this.#inner.accept(record)
  }

  async stop(drainMs: number): Promise<void> {
    clearInterval(this.#timer)
    await this.#inner.stop(drainMs)
  }

  #look(): void {
    this.#board.look(this.#cameras())
    void this.#retained.flush()
  }
}
