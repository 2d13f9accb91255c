import type { Kafka, Producer } from 'kafkajs'
import type { CameraConfig } from '../config/camera.js'
import { reasonOf } from '../delivery/kafka/kafka-errors.js'
import { GantryError } from '../errors.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { atMost, delay } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { CameraErrorMessage } from '../messages/camera-message.js'
import { cameraRecordValue, parseCameraRecord } from './camera-record.js'
import { slotOf } from './camera-slot.js'
import { TopicReader, type TopicRecord } from './topic-reader.js'

const reopenRetry = { baseMs: 500, capMs: 5_000 }
const writeMs = 5_000
const closeMs = 3_000
/** On a record of ours that only takes another one out of a partition where it does not belong. */
const movedHeader = 'gantry_moved'

export type RegistrySettings = Readonly<{
  topics: Readonly<{ cameras: string; cameraErrors: string }>
  groupId: string
  slots: number
  node: string
}>

export type RegistryDeps = Readonly<{
  /** A client in place of the former one for that use. */
  open: (use: 'cameras' | 'changes') => Promise<Kafka>
  /** Why a client has failed, for people. */
  reasonOf?: (error: unknown, use: 'cameras' | 'changes') => string
  /** Whether this node answers for what is wrong in a partition. */
  owns: (slot: number) => boolean
  /** `undefined`: it was removed. Told for cameras that were there from the start, too, before {@link CameraRegistry.whole}. */
  changed: (id: string, config: CameraConfig | undefined) => void
  /** A record could not be followed. */
  refused: () => void
  log: Log
}>

/** The topic of cameras cannot be written now. */
export class RegistryUnavailableError extends GantryError {
  readonly code = 'GANTRY_CLUSTER_UNAVAILABLE'
  readonly hint = 'See that the brokers of cluster.kafka run and let this node write; then ask again.'
  override readonly retryable = true
  constructor(reason: string, cause?: unknown) {
    super(`the cluster's topic of cameras cannot be written: ${reason}`, { cause })
    this.name = 'RegistryUnavailableError'
  }
}

/** The last record of a camera was written by a newer version of the service: what that knows and this does not would be lost. */
export class NewerCameraError extends GantryError {
  readonly code = 'GANTRY_CLUSTER_UNAVAILABLE'
  readonly hint = 'Update this node, or ask one of the newer version.'
  constructor(id: string, version: number) {
    super(`camera "${id}" was set by a newer version of the service: its record is of version ${version}`)
    this.name = 'NewerCameraError'
  }
}

/** A record that is not followed. */
type Fault = Readonly<{ partition: number; offset: bigint; reason: string }> & { isTold: boolean }

/**
 * All cameras of the cluster: a compacted topic with the id as key, which each node reads whole. The last record of a camera counts.
 *
 * A record that cannot be followed is told in the topic of errors, by the node that has its partition, which writes the camera's last good settings
 * again: so that nodes that come later find these. One in a partition where its key does not belong is put where it does.
 */
export class CameraRegistry {
  readonly #cameras = new Map<string, CameraConfig>()
  /** Cameras whose last record is not followed: what is wrong with it. */
  readonly #faults = new Map<string, Fault>()
  /** Cameras whose last record is of a newer version, with that. */
  readonly #newer = new Map<string, number>()
  readonly #closing = new AbortController()
  readonly #reader: TopicReader
  #producer: Promise<Producer> | undefined
  #running: Promise<void> | undefined
  #reason: string | undefined
  #whole: () => void = () => undefined
  /** Everything that was in the topic when reading began is known. */
  readonly whole: Promise<void>

  constructor(
    readonly settings: RegistrySettings,
    readonly deps: RegistryDeps,
  ) {
    this.whole = new Promise((resolve) => (this.#whole = resolve))
    const { groupId, node, topics } = settings
    this.#reader = new TopicReader(topics.cameras, `${groupId}.cameras.${node}`, (record) =>
      this.#read(record),
    )
  }

  get cameras(): ReadonlyMap<string, CameraConfig> {
    return this.#cameras
  }

  /** Whether there is a record of it, even one that cannot be followed. */
  has(id: string): boolean {
    return this.#cameras.has(id) || this.#faults.has(id) || this.#newer.has(id)
  }

  /** Why it is not read now; undefined while it is. */
  get reason(): string | undefined {
    return this.#reason
  }

  start(): void {
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const beganMs = nowMs()
      const reason = await this.#readOn().catch((error: unknown) => this.#reasonOf(error, 'cameras'))
      if (signal.aborted) return
      this.#reason = reason
      this.deps.log.warn({ reason }, 'topic of cameras is not read, trying again')
      if (nowMs() - beganMs > 60_000) attempt = 0
      await delay(backoffMs(attempt, reopenRetry), signal)
    }
  }

  async #readOn(): Promise<never> {
    const whole = () => {
      this.#reason = undefined
      this.#whole()
    }
    return this.#reader.run(await this.deps.open('cameras'), whole, this.#closing.signal)
  }

  #reasonOf(error: unknown, use: 'cameras' | 'changes'): string {
    return this.deps.reasonOf?.(error, use) ?? reasonOf(error)
  }

  #read(record: TopicRecord): void {
    const { key: id, value, partition } = record
    const { slots } = this.settings
    if (record.header(movedHeader) !== undefined) return
    if (slotOf(id, slots) !== partition) {
      if (this.deps.owns(partition)) this.#inBackground(id, () => this.#move(record))
      return
    }
    const read = parseCameraRecord(id, value)
    this.#faults.delete(id)
    if (read.kind !== 'invalid') this.#newer.delete(id)
    switch (read.kind) {
      case 'camera':
        this.#cameras.set(id, read.config)
        this.deps.changed(id, read.config)
        return
      case 'removed':
        if (this.#cameras.delete(id)) this.deps.changed(id, undefined)
        return
      case 'newer':
        this.#newer.set(id, read.version)
        this.#notFollowed(
          record,
          `it is of version ${read.version}, which this node does not know: update it`,
        )
        return
      case 'invalid':
        this.#faults.set(id, { partition, offset: record.offset, reason: read.reason, isTold: false })
        this.#notFollowed(record, read.reason)
        if (this.deps.owns(partition)) this.#inBackground(id, () => this.#refuse(id))
        return
      default:
        read satisfies never
    }
  }

  #notFollowed({ key: id, offset, partition }: TopicRecord, reason: string): void {
    this.deps.refused()
    this.deps.log.warn(
      { cameraId: id, reason, partition, offset: String(offset) },
      'record of a camera not followed',
    )
  }

  #inBackground(cameraId: string, work: () => Promise<unknown>): void {
    work().catch((error: unknown) => {
      const reason = error instanceof GantryError ? error.message : reasonOf(error)
      this.deps.log.warn({ cameraId, reason }, 'topic of cameras not put in order')
    })
  }

  async #refuse(id: string): Promise<void> {
    await this.#tell(id)
    const good = this.#cameras.get(id)
    // Somebody may have put it right meanwhile; and what is of a newer version is not for this one to write.
    if (good === undefined || !this.#faults.has(id) || this.#newer.has(id)) return
    await this.#send(this.settings.topics.cameras, { key: id, value: cameraRecordValue(good) })
  }

  async #tell(cameraId: string): Promise<void> {
    const fault = this.#faults.get(cameraId)
    if (fault === undefined || fault.isTold) return
    const { topics, node } = this.settings
    const { partition, offset, reason } = fault
    const error: CameraErrorMessage = {
      ...{ cameraId, topic: topics.cameras, partition, offset: String(offset), reason, node },
      at: new Date(wallMs()).toISOString(),
    }
    fault.isTold = true
    await this.#send(topics.cameraErrors, { key: cameraId, value: JSON.stringify(error) }).catch(
      (failure: unknown) => {
        fault.isTold = false
        throw failure
      },
    )
  }

  /** This node answers for these slots from now on: what was wrong in them before anybody did is told. */
  gained(slots: ReadonlyMap<number, unknown>): void {
    for (const [id, { partition }] of this.#faults)
      if (slots.has(partition)) this.#inBackground(id, () => this.#tell(id))
  }

  /** First to where it belongs, then out of where it does not: what ends in between is done again by the next owner. */
  async #move({ key, value, partition }: TopicRecord): Promise<void> {
    const { cameras } = this.settings.topics
    await this.#send(cameras, { key, value: value === null ? null : Buffer.from(value) })
    await this.#send(cameras, { key, value: null, partition, headers: { [movedHeader]: '1' } })
  }

  /** Resolves once this node has read it, and so follows it. @throws RegistryUnavailableError, NewerCameraError */
  async set(config: CameraConfig): Promise<void> {
    const newer = this.#newer.get(config.id)
    if (newer !== undefined) throw new NewerCameraError(config.id, newer)
    await this.#write(config.id, cameraRecordValue(config))
  }

  /** @throws RegistryUnavailableError */
  async remove(id: string): Promise<void> {
    await this.#write(id, null)
  }

  async #write(key: string, value: string | null): Promise<void> {
    const deadlineMs = nowMs() + writeMs
    const { partition, offset } = await this.#send(this.settings.topics.cameras, { key, value })
    if (await this.#reader.hasRead(partition, offset, deadlineMs - nowMs())) return
    throw new RegistryUnavailableError('it was written, and is not read back')
  }

  async #send(
    topic: string,
    message: Readonly<{
      key: string
      value: string | Buffer | null
      partition?: number
      headers?: Record<string, string>
    }>,
  ): Promise<Readonly<{ partition: number; offset: bigint }>> {
    try {
      this.#producer ??= this.#openProducer()
      const work = (await this.#producer).send({ topic, acks: -1, timeout: writeMs, messages: [message] })
      const [placed] = (await atMost(writeMs, work)) ?? []
      if (placed?.baseOffset === undefined) throw new Error(`no acknowledgement within ${writeMs} ms`)
      return { partition: placed.partition, offset: BigInt(placed.baseOffset) }
    } catch (error) {
      this.#closeProducer()
      throw new RegistryUnavailableError(this.#reasonOf(error, 'changes'), error)
    }
  }

  async #openProducer(): Promise<Producer> {
    const kafka = await this.deps.open('changes')
    const producer = kafka.producer({ allowAutoTopicCreation: false, retry: { retries: 3 } })
    await producer.connect()
    return producer
  }

  #closeProducer(): void {
    const producer = this.#producer
    this.#producer = undefined
    void producer?.then((open) => open.disconnect()).catch(() => undefined)
  }

  async stop(): Promise<void> {
    this.#closing.abort()
    await this.#running
    const producer = this.#producer
    this.#producer = undefined
    if (producer)
      await atMost(
        closeMs,
        producer.then((open) => open.disconnect()).catch(() => undefined),
      )
  }
}
