import { setTimeout as timeout } from 'node:timers/promises'
import { backoffMs, type BackoffLimits } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { atMost, delay } from '../../lifecycle/delay.js'
import { decideSend } from './batch-policy.js'
import { KafkaUnavailableError, reasonOf, sendVerdict } from './kafka-errors.js'
import type { OpenLink, RecordLink } from './record-link.js'
import type { QueuedRecord, RecordQueue } from './record-queue.js'

export type DeliverySettings = Readonly<{
  lingerMs: number
  maxBatchRecords: number
  maxBatchBytes: number
  backoff: BackoffLimits
  /** First deadline of a send. It doubles after each miss, so that a slow broker is not flooded with repetitions. */
  sendDeadlineMs: number
  maxSendDeadlineMs: number
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
  /** The broker will never take this record. */
  rejected: (record: QueuedRecord, reason: string) => void
}>

/**
 * Takes records from the queue to the far side, batch after batch, one at a time so that each camera keeps its order. A batch that
 * failed is sent again unchanged, over a new connection, until it is taken.
 */
export class Delivery {
  readonly #abort = new AbortController()
  #draining = false
  #leased: readonly QueuedRecord[] = []
  #batchLimit: number
  #sendDeadlineMs: number
  #failures = 0
  #wake: (() => void) | undefined
  #loop: Promise<void> | undefined

  constructor(
    readonly queue: RecordQueue,
    readonly open: OpenLink,
    readonly settings: DeliverySettings,
    readonly listener: DeliveryListener,
  ) {
    this.#batchLimit = settings.maxBatchRecords
    this.#sendDeadlineMs = settings.sendDeadlineMs
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
    if (length === 1 || length >= this.#batchLimit) this.#wake?.()
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
      await delay(backoffMs(this.#failures - 1, this.settings.backoff), this.#abort.signal)
    }
  }

  /** @returns why the connection ended, or undefined when there is nothing more to do. */
  async #serveOnce(): Promise<string | undefined> {
    let link: RecordLink | undefined
    try {
      link = await this.open(this.#abort.signal)
      if (this.#leased.length === 0) this.listener.up()
      await this.#deliverAll(link)
      return undefined
    } catch (error) {
      return reasonOf(error)
    } finally {
      link?.close()
    }
  }

  async #deliverAll(link: RecordLink): Promise<void> {
    const cut = () => link.close()
    this.#abort.signal.addEventListener('abort', cut, { once: true })
    try {
      while (await this.#leaseBatch()) await this.#send(link)
    } finally {
      this.#abort.signal.removeEventListener('abort', cut)
    }
  }

  /** @returns false when there is nothing left to deliver and nothing more will come. */
  async #leaseBatch(): Promise<boolean> {
    while (this.#leased.length === 0) {
      if (this.#abort.signal.aborted) return false
      const waiting = { count: this.queue.length, oldestMs: this.#oldestMs(), draining: this.#draining }
      const decision = decideSend(waiting, { ...this.settings, maxBatchRecords: this.#batchLimit })
      if (decision.kind === 'send')
        this.#leased = this.queue.lease(this.#batchLimit, this.settings.maxBatchBytes)
      else if (decision.kind === 'wait') await this.#sleep(decision.forMs)
      else if (this.#draining) return false
      else await this.#sleep(undefined)
    }
    return true
  }

  async #send(link: RecordLink): Promise<void> {
    try {
      await link.send(this.#leased, this.#sendDeadlineMs)
    } catch (error) {
      if (sendVerdict(error) === 'too_large') this.#makeSmaller(reasonOf(error))
      else if (error instanceof KafkaUnavailableError)
        this.#sendDeadlineMs = Math.min(this.#sendDeadlineMs * 2, this.settings.maxSendDeadlineMs)
      throw error
    }
    const delivered = this.#leased
    this.#leased = []
    this.queue.settle(delivered)
    this.#failures = 0
    this.#batchLimit = this.settings.maxBatchRecords
    this.#sendDeadlineMs = this.settings.sendDeadlineMs
    this.listener.up()
    this.listener.delivered(delivered)
  }

  /** Halves a batch the broker finds too large; a single record that is too large has no future. */
  #makeSmaller(reason: string): void {
    const [only, ...others] = this.#leased
    if (only === undefined) return
    if (others.length === 0) {
      this.queue.settle(this.#leased)
      this.listener.rejected(only, reason)
    } else {
      this.#batchLimit = Math.ceil(this.#leased.length / 2)
      this.queue.release(this.#leased)
    }
    this.#leased = []
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
