import { Worker } from 'node:worker_threads'
import { join } from 'node:path'
import { eventTypes } from '../messages/cloud-event.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { atMost } from '../lifecycle/delay.js'
import { entryPath } from '../lifecycle/entry.js'
import type { Log } from '../lifecycle/log.js'
import type { Service } from '../lifecycle/service.js'
import type { CoverageSpan } from '../vision/coverage.js'
import type { StoreMetrics } from '../metrics/store-metrics.js'
import { CoverageWrites } from './coverage-writes.js'
import {
  nextPosition,
  type Gap,
  type PlacedRecord,
  type RangeQuery,
  type SinkPlace,
  type StoreRecord,
} from './record.js'
import {
  packBatch,
  type FromWriter,
  type Rescue,
  type StoreTrouble,
  type ToWriter,
  type WriterStart,
} from './store-messages.js'
import { settleEveryMs, SettledPlaces } from './settled-places.js'
import { StoreReader } from './store-reader.js'
import { StoreState, type StoreHealth } from './store-state.js'
import { UntoldGaps } from './untold-gaps.js'
import { WaitingRecord, WaitingRecords, type OnPublished } from './waiting-records.js'

/** The file under `store.path`. */
export const storeFileName = 'records.sqlite'

/** A commit that takes longer holds nobody up: what waits for it is published. */
const stalledAfterMs = 1_000
const tryAgainMs = 1_000
/** Of one commit. */
const batch = { records: 1_000, bytes: 4 * 1024 ** 2 } as const
/** What waits in memory for a file that takes nothing; beyond it the oldest are not stored. */
const maxWaitingBytes = 16 * 1024 ** 2
const openWithinMs = 5_000
const lastCommitMs = 2_000
/** Positions of a run that does not know those before it: no run counts as fast as this clock, which may begin at 1970. */
const positionsPerMs = 1_024
const earliestMs = Date.UTC(2026, 0)

export type StoreSettings = Omit<WriterStart, 'path'> &
  Readonly<{
    /** `store.path`. */
    folder: string
    /** Whether results are committed before they are published; events always are. */
    detections: 'outbox' | 'memory'
  }>

/**
 * Where every record goes before anybody is told of it: it is accepted once it is in the file, and published then. A thread writes; what
 * comes while it is at it goes in the next commit. A file that cannot be written, or is slow, holds nobody up: records are published
 * without being stored, which readiness says, and those that still wait in memory are stored once it can be.
 */
export class RecordStore implements Service {
  readonly #path: string
  #writer: Worker | undefined
  readonly #reader: StoreReader
  readonly #state: StoreState
  #newest = 0
  #isOpen = false
  readonly #waiting = new WaitingRecords()
  #inFlight: readonly WaitingRecord[] | undefined
  #sentMs = 0
  #stall: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #settleTimer: NodeJS.Timeout | undefined
  readonly #settled = new SettledPlaces()
  readonly #untold = new UntoldGaps()
  readonly #forgetting: (() => void)[] = []
  readonly #coverage = new CoverageWrites((spans) => {
    if (this.#isOpen) this.#post({ type: 'coverage', spans })
  })
  /** What is wrong with the file, until it is salvaged. */
  #damage: string | undefined
  #opened: ((places: readonly SinkPlace[]) => void) | undefined
  #places: readonly SinkPlace[] | undefined
  #idle: (() => void) | undefined
  #stopping: Promise<void> | undefined
  /** Records that a sink did not get were deleted or lost. */
  onGap: ((gap: Gap) => void) | undefined
  /** Where sinks are, once that is known: after the start, where the file could not be opened then. */
  onPlaces: ((places: readonly SinkPlace[]) => void) | undefined

  constructor(
    readonly settings: StoreSettings,
    readonly metrics: StoreMetrics,
    readonly log: Log,
  ) {
    this.#path = join(settings.folder, storeFileName)
    this.#state = new StoreState(this.#path, metrics, log)
    this.#reader = new StoreReader(this.#path, (reason) => this.#isDamaged(reason))
  }

  get path(): string {
    return this.#path
  }

  get health(): StoreHealth {
    return this.#state.health
  }

  /** Position of the newest record that was accepted. */
  get newest(): number {
    return this.#newest
  }

  /** @returns once the file is open, or cannot be, or after some seconds; it is tried again then. Never rejects. */
  async start(): Promise<void> {
    const opened = new Promise<readonly SinkPlace[]>((resolve) => (this.#opened = resolve))
    this.#spawn()
    await atMost(openWithinMs, opened)
    this.#opened = undefined
    // A place behind all that there may be.
    if (!this.#isOpen) this.#newest = Math.max(wallMs(), earliestMs) * positionsPerMs
    this.#reader.start()
  }

  /** @param gap - that the record tells. */
  accept(record: StoreRecord, published: OnPublished, gap?: Gap): void {
    const isResult = record.type === eventTypes.detections
    this.#newest = nextPosition(this.#newest, isResult)
    const placed = { ...record, position: this.#newest }
    const isKept = !isResult || this.settings.detections === 'outbox'
    if (!isKept && this.#waiting.length === 0 && this.#inFlight === undefined) return published(placed, false)
    this.#waiting.push(new WaitingRecord(placed, isKept, gap, published))
    if (this.#state.is('degraded') || this.#state.is('stopped')) this.#letThrough()
    this.#flush()
  }

  /** All of the sink up to here is delivered or given up. */
  settle(sink: string, position: number): void {
    if (!this.#settled.settle(sink, position)) return
    this.#settleTimer ??= setTimeout(() => this.#writeSettled(), settleEveryMs)
  }

  /** @throws StoreReadError */
  forSink(
    sink: string,
    after: number,
    below: number,
    limits: Readonly<{ records: number; bytes: number }>,
  ): Promise<readonly PlacedRecord[]> {
    return this.#reader.ask({ type: 'forSink', sink, after, below, ...limits })
  }

  /** @throws StoreReadError */
  range(query: RangeQuery): Promise<readonly PlacedRecord[]> {
    return this.#reader.ask({ type: 'range', query })
  }

  /** Written within half a second. Never throws: what cannot be written is not there later. */
  writeCoverage(spans: readonly CoverageSpan[]): void {
    this.#coverage.push(spans)
  }

  /** What lies at least partly within, by camera in order of time. @throws StoreReadError */
  coverage(
    cameraId: string | undefined,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<readonly CoverageSpan[]> {
    return this.#reader.ask({ type: 'coverage', cameraId, fromMs, toMs, limit })
  }

  /** The end of what is stored of each camera. @throws StoreReadError */
  coverageEnds(): Promise<ReadonlyMap<string, number>> {
    return this.#reader.ask({ type: 'coverageEnds' })
  }

  /** Results of the camera until now are asked for no more. Never rejects. */
  forget(cameraId: string): Promise<void> {
    if (this.#writer === undefined) return Promise.resolve()
    this.#post({ type: 'forget', cameraId, position: this.#newest })
    return new Promise((resolve) => this.#forgetting.push(resolve))
  }

  /** Resolves when all that was accepted is published, or after so long. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    const idle = new Promise<void>((resolve) => (this.#idle = resolve))
    this.#writeSettled()
    if (this.#inFlight !== undefined) await atMost(withinMs, idle)
    this.#idle = undefined
  }

  /** What can be committed soon is. Idempotent, never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    await this.drain(lastCommitMs)
    this.#coverage.flush()
    clearTimeout(this.#settleTimer)
    clearTimeout(this.#stall)
    clearTimeout(this.#retry)
    this.#waiting.publish()
    this.#state.stopped()
    const writer = this.#writer
    this.#writer = undefined
    const gone = new Promise<void>((resolve) => (writer ? writer.once('exit', () => resolve()) : resolve()))
    writer?.postMessage({ type: 'close' } satisfies ToWriter)
    await Promise.all([this.#reader.stop(), gone])
  }

  #writeSettled(): void {
    clearTimeout(this.#settleTimer)
    this.#settleTimer = undefined
    this.#settled.makeDue()
    this.#flush()
  }

  #spawn(): void {
    const { folder: _folder, detections: _detections, ...start } = this.settings
    const workerData: WriterStart = { ...start, path: this.#path }
    const writer = new Worker(entryPath(import.meta.url, './writer-thread.js'), {
      name: 'store-writer',
      workerData,
    })
    this.#writer = writer
    this.#isOpen = false
    writer.on('message', (message: FromWriter) => this.#receive(message))
    writer.on('error', (error) => this.log.error({ err: error }, 'the thread that writes records failed'))
    writer.on('exit', () => {
      for (const forgot of this.#forgetting.splice(0)) forgot()
      if (this.#writer !== writer) return
      this.#failed({ kind: 'failed', reason: 'the thread that writes records ended' })
      this.#writer = undefined
    })
    this.#open()
  }

  #open(): void {
    const damage = this.#damage
    this.#post({
      ...{ type: 'open', from: this.#newest, settled: this.#settled.known },
      ...(damage !== undefined && { damage }),
    })
  }

  #receive(message: FromWriter): void {
    switch (message.type) {
      case 'opened':
        return this.#isOpenNow(message.newest, message.sinks, message.rescue)
      case 'committed':
        return this.#committed()
      case 'failed':
        return this.#failed(message.trouble)
      case 'damaged':
        return this.#isDamaged(message.reason)
      case 'forgot':
        return this.#forgetting.shift()?.()
      case 'figures': {
        this.#state.bytes = message.figures.usedBytes
        this.metrics.records.inc({ result: 'deleted' }, message.dropped)
        return
      }
      case 'gaps':
        for (const gap of this.#untold.ofAll(message.gaps)) this.onGap?.(gap)
        return
      default:
        message satisfies never
    }
  }

  #isOpenNow(newest: number, places: readonly SinkPlace[], rescue: Rescue | undefined): void {
    clearTimeout(this.#stall)
    this.#stall = undefined
    this.#isOpen = true
    this.#damage = undefined
    if (rescue !== undefined) this.#state.rescued(rescue)
    this.#newest = Math.max(this.#newest, newest)
    if (this.#places === undefined) this.onPlaces?.(places)
    this.#places ??= places
    this.#reader.reopen()
    // What was refused before shows whether it can be written.
    if (!this.#state.is('degraded') || this.#waiting.length === 0) this.#state.up()
    this.#opened?.(places)
    this.#flush()
  }

  /** Somebody read what cannot be right. The next that is done with the file is to salvage it. */
  #isDamaged(reason: string): void {
    if (!this.#isOpen) return
    this.#damage ??= reason
    this.#flush()
  }

  /** What waits does so until the file is salvaged, for as long as for a slow disk. */
  #salvage(): void {
    this.#isOpen = false
    this.#stall ??= setTimeout(
      () => this.#hold('the file is damaged: what can be read of it is being salvaged'),
      stalledAfterMs,
    )
    this.#open()
  }

  /** The next commit, where none is under way. */
  #flush(): void {
    if (this.#inFlight !== undefined) return
    if (!this.#isOpen) return this.#idle?.()
    if (this.#damage !== undefined) return this.#salvage()
    const next = this.#waiting.take(batch)
    const settled = this.#settled.take()
    if (next.length === 0 && settled.size === 0) return this.#idle?.()
    this.#inFlight = next
    this.#sentMs = nowMs()
    const kept = next.flatMap(({ isKept, record }) => (isKept ? [record] : []))
    const packed = packBatch(kept)
    this.#post(
      {
        type: 'commit',
        batch: packed,
        settled: Object.fromEntries(settled),
        told: next.flatMap(({ gap }) => (gap === undefined ? [] : [gap])),
        durable: kept.some(({ type }) => type !== eventTypes.detections),
      },
      [packed.values],
    )
    this.#stall ??= setTimeout(
      () => this.#hold(`a commit takes longer than ${stalledAfterMs} ms: the disk is slow`),
      stalledAfterMs,
    )
  }

  #committed(): void {
    const done = this.#takeBack()
    this.#settled.written()
    this.metrics.commit.observe((nowMs() - this.#sentMs) / 1_000)
    this.metrics.records.inc({ result: 'stored' }, done.filter(({ isKept }) => isKept).length)
    for (const { gap } of done) this.#untold.over(gap)
    for (const waiting of done) waiting.publish(true)
    if (this.#state.is('degraded')) this.#state.up()
    this.#flush()
  }

  #takeBack(): readonly WaitingRecord[] {
    clearTimeout(this.#stall)
    this.#stall = undefined
    const taken = this.#inFlight ?? []
    this.#inFlight = undefined
    return taken
  }

  /** What was under way goes in the next commit again. */
  #failed({ kind, reason }: StoreTrouble): void {
    this.#settled.makeDue()
    this.#waiting.putBack(this.#takeBack())
    this.#isOpen = false
    if (kind === 'damaged') {
      this.#damage ??= reason
      return this.#salvage()
    }
    this.#hold(reason)
    this.#opened?.([])
    this.#idle?.()
    if (this.#state.is('stopped')) return
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => (this.#writer ? this.#open() : this.#spawn()), tryAgainMs)
  }

  /** From now on nobody waits for the file. */
  #hold(reason: string): void {
    if (this.#state.is('stopped')) return
    this.#state.degraded(reason)
    for (const waiting of this.#inFlight ?? []) waiting.publish(false)
    this.#letThrough()
  }

  /** What waits is published, and goes on waiting for the file, as far as there is room. */
  #letThrough(): void {
    this.#waiting.publish()
    const gone = this.#waiting.bound(maxWaitingBytes)
    for (const { gap } of gone) this.#untold.over(gap)
    this.metrics.records.inc({ result: 'unstored' }, gone.length)
  }

  #post(message: ToWriter, transfer: readonly ArrayBuffer[] = []): void {
    this.#writer?.postMessage(message, [...transfer])
  }
}
