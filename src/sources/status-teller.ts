import type { CameraState, CameraStatus } from '../vision/camera-state.js'
import { wallMs } from '../lifecycle/clock.js'

/** Holds a source's status and tells each change once. */
export class StatusTeller {
  #status: CameraStatus

  constructor(
    initial: CameraState,
    reason: string,
    readonly tell: (status: CameraStatus) => void,
  ) {
    this.#status = { state: initial, reason, sinceMs: wallMs(), attempts: 0 }
  }

  get status(): CameraStatus {
    return this.#status
  }

  set(change: Omit<CameraStatus, 'sinceMs'>): void {
    const { state, reason, attempts, retryInMs, decode } = this.#status
    const same =
      state === change.state &&
      reason === change.reason &&
      attempts === change.attempts &&
      retryInMs === change.retryInMs &&
      decode === change.decode
    if (same) return
    this.#status = { ...change, sinceMs: state === change.state ? this.#status.sinceMs : wallMs() }
    this.tell(this.#status)
  }
}
