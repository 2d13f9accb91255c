import type { PendingRequest } from './pending-request.js'

/** Decides which requests run when. Every request it is offered settles, unless it is given back by {@link clear}. */
export interface Scheduler {
  /** Requests that have not started. */
  readonly waiting: number
  offer(pending: PendingRequest): void
  /** An instance may have become idle. */
  pump(): void
  /** Gives back everything that waits. */
  clear(): readonly PendingRequest[]
}
