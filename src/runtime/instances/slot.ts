import type { BatchSizes, SizeCost } from '../batch-sizes.js'

/** Of an instance that takes batches of certain sizes: each has a session of its own, whose first run takes a GPU seconds. */
export type InstanceSizes = Readonly<{
  /** Ascending. */
  all: BatchSizes
  /** Those that had run when it started, the smallest first; one at least. */
  warm: readonly SizeCost[]
  /** Runs one for the first time, while the instance does nothing else. @throws why it does not run */
  run: (size: number) => Promise<SizeCost>
}>

/** What a group runs jobs on: one at a time, in a thread of its own or elsewhere. */
export interface GroupInstance<Job, Result> {
  /** @throws when the whole job failed. */
  execute(job: Job): Promise<Result>
  /** Number of the thread that runs it, by `ownThread`: what that takes of memory is the model's. Absent: it takes none here. */
  readonly thread?: number | undefined
  /** Absent: batches run as they are. */
  readonly sizes?: InstanceSizes | undefined
  /** Resolves with the cause if the instance ends unasked; it is then started again. Absent: it never does. */
  readonly exited?: Promise<Error>
  /**
   * Ends after the run in progress. Idempotent, never rejects.
   *
   * @param forMs - longest that is waited for; absent: as long as fits the instance.
   * @returns `false`: it did not end in that time.
   */
  close(forMs?: number): Promise<boolean | void>
}

/** The place of an instance in its group; another one takes it when that ends. */
export class Slot<Job, Result> {
  /** `undefined` while none is up. */
  instance: GroupInstance<Job, Result> | undefined
  /** Jobs given to it and not ended: what it runs, and what waits behind. */
  running = 0
  /** When the run in progress began; `Infinity` while it waits for its turn. */
  sinceMs = 0
  /** With the way to the instance and back. */
  lastRunMs = Infinity
  /** How often it ended since its last good run. */
  failures = 0
  /** How often another instance took its place, to give back memory. */
  replaced = 0
  isReplacing = false
  /** It does something that nothing is to wait behind. */
  isPreparing = false

  constructor(readonly index: number) {}

  get isUp(): boolean {
    return this.instance !== undefined
  }

  get isIdle(): boolean {
    return this.running === 0 && this.isUp && !this.isPreparing
  }
}
