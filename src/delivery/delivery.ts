import type { Service } from '../lifecycle/service.js'
import { setTimeout as timeout } from 'node:timers/promises'
import { backoffMs, type BackoffLimits } from '../lifecycle/backoff.js'
import { nowMs } from '../lifecycle/clock.js'
import { atMost, delay } from '../lifecycle/delay.js'
import { decideSend } from './batch-policy.js'
import { ConnectionClosers } from './connection-closers.js'
import type { RecordLink, RecordLinks, SetAside } from './record-link.js'
import type { QueuedRecord, RecordQueue } from './record-queue.js'
import { RecordsRefusedError, type Refusal } from './refusal.js'
import { RefusalSearch } from './refusal-search.js'

export type DeliverySettings = Readonly<{
  lingerMs: number
  maxBatchRecords: number
  maxBatchBytes: number
  backoff: BackoffLimits
  /** First deadline of a send. It doubles after each miss, so that a slow far side is not flooded with repetitions. */
  sendDeadlineMs: number
  maxSendDeadlineMs: number
  /** A send that takes so long is told of; absent: its failure alone is. */
  lateAfterMs?: number
}>

export const defaultDelivery = {
  maxBatchBytes: 900 * 1024,
  backoff: { baseMs: 250, capMs: 3_000 },
  sendDeadlineMs: 6_000,
  maxSendDeadlineMs: 30_000,
} as const

/** What the delivery tells its sink. */
export type DeliveryListener = Readonly<{
  up: () => void
  /** @param attempt - 1 for the first failure in a row. */
  down: (reason: string, attempt: number) => void
  delivered: (records: readonly QueuedRecord[]) => void
  /** It will never be taken. @param aside - where it stays; undefined where the far side has no place for such records. */
  rejected: (record: QueuedRecord, refusal: Refusal, aside: SetAside | undefined) => void
}>

const connectionClosed: Refusal = {
  reason: 'CONNECTION_CLOSED',
  detail: 'each connection over which it is sent is closed, and others are taken',
  certain: true,
}

/** Records that are at hand behind those that fail, where a send takes fewer: one that is never taken is known by others that are. */
const lookAhead = 16

/** Records of a partition that are tried alone while each is refused; more with every attempt, as others may be behind them. */
const doubts = { first: 4, most: 64 }

/**
 * Takes records from the queue to the far side, batch after batch, one at a time so that each camera keeps its order. A batch that
 * failed is sent again unchanged, over a new connection, until it is taken; one that was refused is searched for the records at fault.
 */
export class Delivery implements Service {
  readonly #abort = new AbortController()
  #draining = false
  #leased: readonly QueuedRecord[] = []
  #sendDeadlineMs: number
  #failures = 0
  /** The last send did not say why it failed, or may have failed for a record. */
  #careful = false
  #retryAfterMs = 0
  #ended: Error | undefined
  readonly #closers: ConnectionClosers
  /** Records that will never be taken, and are to be set aside yet. */
  #condemned: readonly QueuedRecord[] = []
  #wake: (() => void) | undefined
  #loop: Promise<void> | undefined

  constructor(
    readonly queue: RecordQueue,
    readonly links: RecordLinks,
    readonly settings: DeliverySettings,
    readonly listener: DeliveryListener,
  ) {
    this.#sendDeadlineMs = settings.sendDeadlineMs
    this.#closers = new ConnectionClosers(settings.maxBatchRecords)
  }

  /** Records under way. */
  get inFlight(): number {
    return this.#leased.length
  }

  start(): void {
    this.#loop ??= this.#run()
  }

  /** The queue has a record more. */
  notify(): void {
    const { length } = this.queue
    if (length === 1 || length >= this.settings.maxBatchRecords) this.#wake?.()
  }

  /** Idempotent, never rejects. Tries on for `drainMs` while there is something to deliver; what is left then stays in the queue. */
  async stop(drainMs: number): Promise<void> {
    this.#draining = true
    this.#wake?.()
    if (this.#loop !== undefined && this.queue.length + this.#leased.length > 0)
      await atMost(drainMs, this.#loop)
    this.#abort.abort()
    await this.#loop
    this.queue.release(this.#leased)
    this.#leased = []
  }

  async #run(): Promise<void> {
    while (!this.#isOver()) {
      const reason = await this.#serveOnce()
      if (reason === undefined || this.#abort.signal.aborted) return
      this.#failures += 1
      this.listener.down(reason, this.#failures)
      const backMs = backoffMs(this.#failures - 1, this.settings.backoff)
      await delay(Math.max(backMs, this.#retryAfterMs), this.#abort.signal)
    }
  }

  /** @returns why the connection ended, or undefined when there is nothing more to do. */
  async #serveOnce(): Promise<string | undefined> {
    let link: RecordLink | undefined
    this.#ended = undefined
    this.#retryAfterMs = 0
    try {
      link = await this.links.open(this.#abort.signal, this.#careful)
      if (this.#leased.length === 0) this.listener.up()
      await this.#deliverAll(link)
      return undefined
    } catch (error) {
      const { reason, retryAfterMs = 0 } = this.links.failureOf(error)
      this.#retryAfterMs = retryAfterMs
      return reason
    } finally {
      link?.close()
    }
  }

  async #deliverAll(link: RecordLink): Promise<void> {
    const cut = () => link.close()
    this.#abort.signal.addEventListener('abort', cut, { once: true })
    let isOurs = true
    link.onEnd?.((error) => {
      if (!isOurs) return
      this.#ended = error
      this.#wake?.()
    })
    try {
      while (await this.#leaseBatch()) await this.#send(link)
    } finally {
      isOurs = false
      this.#abort.signal.removeEventListener('abort', cut)
    }
  }

  /** @returns false when there is nothing left to deliver and nothing more will come. */
  async #leaseBatch(): Promise<boolean> {
    while (this.#leased.length === 0) {
      if (this.#abort.signal.aborted) return false
      if (this.#ended !== undefined) throw this.#ended
      const waiting = { count: this.queue.length, oldestMs: this.#oldestMs(), draining: this.#draining }
      const decision = decideSend(waiting, this.settings)
      if (decision.kind === 'send') await this.#leaseMore(this.settings.maxBatchRecords)
      else if (decision.kind === 'wait') await this.#sleep(decision.forMs)
      else if (this.#draining) return false
      else await this.#sleep(undefined)
    }
    return true
  }

  /** Fills the batch: behind records that are not taken now there may be some that are. */
  async #leaseMore(maxRecords: number): Promise<void> {
    const { maxBatchBytes } = this.settings
    const bytes = this.#leased.reduce((sum, { value }) => sum + value.length, 0)
    const places = maxRecords - this.#leased.length
    if (places <= 0 || bytes >= maxBatchBytes) return
    const more = await this.queue.lease(places, maxBatchBytes - bytes)
    this.#leased = [...this.#leased, ...more]
  }

  async #send(link: RecordLink): Promise<void> {
    let records: readonly QueuedRecord[] = []
    try {
      await this.#rejectCondemned(link)
      records = this.#closers.next(this.#leased)
      if (records.length > 0) await this.#search(link).deliver(records)
      await this.#rejectCondemned(link)
    } catch (error) {
      await this.#learn(error, records)
      throw error
    }
    this.#failures = 0
    this.#careful &&= this.#leased.length > 0
    this.#sendDeadlineMs = this.settings.sendDeadlineMs
    this.listener.up()
  }

  /** What a send waits for is told while it waits, once. */
  #tellWhenLate(link: RecordLink): () => void {
    const settled = new AbortController()
    const { lateAfterMs } = this.settings
    if (lateAfterMs === undefined) return () => undefined
    void delay(lateAfterMs, settled.signal).then((isLate) => {
      if (!isLate) return
      const trouble = link.trouble?.()
      const why = trouble === undefined ? '' : ` (${trouble})`
      this.listener.down(`no acknowledgement for ${lateAfterMs} ms${why}`, this.#failures + 1)
    })
    return () => settled.abort()
  }

  #search(link: RecordLink): RefusalSearch {
    const maxDoubts = Math.min(doubts.first * 2 ** this.#failures, doubts.most)
    return new RefusalSearch(link, this.#sendDeadlineMs, maxDoubts, (error) => this.links.failureOf(error), {
      sending: () => this.#tellWhenLate(link),
      rejected: (record, refusal) => this.#reject(link, record, refusal),
      taken: (records) => {
        this.#settle(records)
        this.listener.delivered(records)
        const condemned = this.#closers.taken(records, (record) => link.partitionOf(record))
        this.#condemned = [...this.#condemned, ...condemned]
      },
    })
  }

  async #rejectCondemned(link: RecordLink): Promise<void> {
    for (const record of this.#condemned) {
      await this.#reject(link, record, connectionClosed)
      this.#condemned = this.#condemned.filter((other) => other !== record)
    }
  }

  /** It is settled once it is where it stays, so that an end in between loses nothing. */
  async #reject(link: RecordLink, record: QueuedRecord, refusal: Refusal): Promise<void> {
    const aside = await link.setAside?.(record, refusal, this.#sendDeadlineMs)
    this.#settle([record])
    this.listener.rejected(record, refusal, aside)
  }

  /** How the next attempt differs from the one that failed. */
  async #learn(error: unknown, sent: readonly QueuedRecord[]): Promise<void> {
    const { closed, missed } = this.links.failureOf(error)
    const left = sent.filter((record) => this.#leased.includes(record))
    this.#careful ||= closed || missed
    if (closed) this.#closers.closed(left)
    if (missed) this.#sendDeadlineMs = Math.min(this.#sendDeadlineMs * 2, this.settings.maxSendDeadlineMs)
    if (closed || error instanceof RecordsRefusedError)
      await this.#leaseMore(Math.max(this.settings.maxBatchRecords, lookAhead))
    // Part of it was taken: what is behind the rest may be, too.
    else if (left.length < sent.length) await this.#leaseMore(this.settings.maxBatchRecords)
  }

  #settle(records: readonly QueuedRecord[]): void {
    const settled = new Set(records)
    this.#leased = this.#leased.filter((record) => !settled.has(record))
    this.queue.settle(records)
  }

  #oldestMs(): number {
    const { oldestAcceptedMs } = this.queue
    return oldestAcceptedMs === undefined ? 0 : nowMs() - oldestAcceptedMs
  }

  /** Until woken, or for so long. */
  async #sleep(forMs: number | undefined): Promise<void> {
    const timer = new AbortController()
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      this.#abort.signal.addEventListener('abort', () => resolve(), { once: true, signal: timer.signal })
      if (forMs === undefined) return
      timeout(forMs, undefined, { signal: timer.signal }).then(resolve, () => undefined)
    })
    this.#wake = undefined
    timer.abort()
  }

  #isOver(): boolean {
    return (
      this.#abort.signal.aborted || (this.#draining && this.queue.length === 0 && this.#leased.length === 0)
    )
  }
}
