import { nowMs, wallMs } from '../lifecycle/clock.js'
import { traceparentInJson } from '../messages/detections-json.js'
import type { PlacedRecord, SinkPlace } from '../store/record.js'
import type { QueuedRecord, RecordQueue } from './record-queue.js'

/** Stored records that are held in memory as well, so that who keeps up never reads. */
const held = { records: 2_000, bytes: 4 * 1024 ** 2 } as const

/** What a queue needs of the store. */
export type OutboxStore = Readonly<{
  forSink(
    sink: string,
    after: number,
    below: number,
    limits: Readonly<{ records: number; bytes: number }>,
  ): Promise<readonly PlacedRecord[]>
  settle(sink: string, position: number): void
}>

/** Bounds of records that are in memory alone. */
export type UnstoredLimits = Readonly<{ maxRecords: number; maxBytes: number }>

/**
 * Records of one sink, in the order of their positions. Those that are stored wait in the store, however many they are, and in memory as
 * long as they are few; the others in memory alone, where the oldest go first, because consumers want now.
 */
export class OutboxQueue implements RecordQueue {
  #held: (QueuedRecord | undefined)[] = []
  #first = 0
  #heldBytes = 0
  #unstored = 0
  #unstoredBytes = 0
  /** Records of these positions are in the store alone. */
  #behind = { from: 1, to: 0 }
  #behindLength = 0
  /** Highest position leased. */
  #leasedTo = 0
  readonly #outstanding = new Set<number>()

  constructor(
    readonly sink: string,
    readonly store: OutboxStore,
    readonly limits: UnstoredLimits,
  ) {}

  get length(): number {
    return this.#heldLength + this.#behindLength
  }

  /** What is behind has waited long enough. */
  get oldestAcceptedMs(): number | undefined {
    return this.#isBehind ? 0 : this.#held[this.#first]?.acceptedMs
  }

  get #heldLength(): number {
    return this.#held.length - this.#first
  }

  get #isBehind(): boolean {
    return this.#behind.from <= this.#behind.to
  }

  /** What an earlier run left. @param newest - position of the last record that was not pushed. */
  resume({ settled, pending }: SinkPlace, newest: number): void {
    this.#leasedTo = Math.max(this.#leasedTo, settled)
    if (pending === 0) return
    this.#behind = { from: settled + 1, to: Math.max(newest, this.#behind.to) }
    this.#behindLength += pending
  }

  push(record: QueuedRecord): number {
    const { isStored, position, value } = record
    const isFull = this.#heldLength >= held.records || this.#heldBytes + value.length > held.bytes
    if (isStored && (this.#isBehind || (isFull && this.#heldLength > 0))) {
      this.#behind = { from: this.#isBehind ? this.#behind.from : position, to: position }
      this.#behindLength += 1
      return 0
    }
    this.#held.push(record)
    this.#count(record, 1)
    return isStored ? 0 : this.#bound()
  }

  async lease(maxRecords: number, maxBytes: number): Promise<readonly QueuedRecord[]> {
    const leased = this.#takeHeld(maxRecords, maxBytes)
    const records = leased.length > 0 ? leased : await this.#read(maxRecords, maxBytes)
    for (const { position } of records) this.#outstanding.add(position)
    const last = records.at(-1)
    if (last !== undefined) this.#leasedTo = Math.max(this.#leasedTo, last.position)
    return records
  }

  settle(leased: readonly QueuedRecord[]): void {
    for (const { position } of leased) this.#outstanding.delete(position)
    this.#tellSettled()
  }

  release(leased: readonly QueuedRecord[]): void {
    for (const record of leased) {
      this.#outstanding.delete(record.position)
      this.#count(record, 1)
    }
    this.#held = [...leased, ...this.#held.slice(this.#first)]
    this.#first = 0
  }

  close(): Readonly<{ lost: number; kept: number }> {
    this.#tellSettled()
    const lost = this.#unstored
    const kept = this.length - lost
    this.#held = []
    this.#first = 0
    this.#behindLength = 0
    return { lost, kept }
  }

  /** Those that come before everything that is in the store alone. */
  #takeHeld(maxRecords: number, maxBytes: number): readonly QueuedRecord[] {
    const leased: QueuedRecord[] = []
    let bytes = 0
    for (let next = this.#held[this.#first]; next !== undefined; next = this.#held[this.#first]) {
      bytes += next.value.length
      if (this.#isBehind && next.position >= this.#behind.from) break
      if (leased.length === maxRecords || (leased.length > 0 && bytes > maxBytes)) break
      this.#shift()
      leased.push(next)
    }
    return leased
  }

  async #read(records: number, bytes: number): Promise<readonly QueuedRecord[]> {
    while (this.#isBehind) {
      const { from, to } = this.#behind
      const next = this.#held[this.#first]?.position ?? Infinity
      const below = Math.min(next, to + 1)
      const read = await this.store.forSink(this.sink, from - 1, below, { records, bytes })
      const last = read.at(-1)
      // Nothing more before `below`, which is in memory or comes later.
      this.#behind.from = last ? last.position + 1 : next === below ? below + 1 : below
      this.#behindLength = this.#isBehind ? Math.max(0, this.#behindLength - read.length) : 0
      if (last !== undefined) return read.map((record) => queuedRecord(record, true, acceptedMsOf(record)))
      const leased = this.#takeHeld(records, bytes)
      if (leased.length > 0) return leased
    }
    return []
  }

  #tellSettled(): void {
    const first = this.#held[this.#first]
    const firstHeld = first && first.position <= this.#leasedTo ? first.position : Infinity
    const open = Math.min(firstHeld, ...this.#outstanding)
    this.store.settle(this.sink, Math.min(this.#leasedTo, open - 1))
  }

  #bound(): number {
    const { maxRecords, maxBytes } = this.limits
    let dropped = 0
    while (this.#unstored > 1 && (this.#unstored > maxRecords || this.#unstoredBytes > maxBytes)) {
      const oldest = this.#held.findIndex((record) => record?.isStored === false)
      if (oldest === this.#first) this.#shift()
      else for (const record of this.#held.splice(oldest, 1)) if (record) this.#count(record, -1)
      dropped += 1
    }
    return dropped
  }

  #shift(): QueuedRecord | undefined {
    const record = this.#held[this.#first]
    if (record === undefined) return undefined
    this.#held[this.#first] = undefined
    this.#first += 1
    this.#count(record, -1)
    if (this.#first >= 1_024 && this.#first * 2 >= this.#held.length) {
      this.#held = this.#held.slice(this.#first)
      this.#first = 0
    }
    return record
  }

  #count({ isStored, value }: QueuedRecord, sign: 1 | -1): void {
    if (isStored) this.#heldBytes += sign * value.length
    else {
      this.#unstored += sign
      this.#unstoredBytes += sign * value.length
    }
  }
}

/** A record on its way to the sinks. @param acceptedMs - monotonic. */
export function queuedRecord(record: PlacedRecord, isStored: boolean, acceptedMs: number): QueuedRecord {
  const { position, id, type, cameraId, timeMs, value: bytes, sink } = record
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const traceparent = traceparentInJson(value)
  return {
    ...{ position, id, type, cameraId, isStored, acceptedMs, ...(sink !== undefined && { sink }) },
    time: new Date(timeMs).toISOString(),
    value,
    ...(traceparent !== undefined && { traceparent }),
  }
}

/** As if it had been accepted when it was captured: this may have been before a restart. */
function acceptedMsOf({ timeMs }: PlacedRecord): number {
  return nowMs() - Math.max(0, wallMs() - timeMs)
}
