/** `idle -> starting -> running -> draining -> stopped`, or `failed`. Each arrow happens once. */
export type ServiceState = 'idle' | 'starting' | 'running' | 'draining' | 'stopped' | 'failed'

/** Whatever starts has a state, an order and an end. */
export interface Service {
  readonly state: ServiceState
  start(signal: AbortSignal): Promise<void>
  /** Idempotent, never rejects. Refuses new work, drains for at most `drainMs`, then cuts. */
  stop(drainMs: number): Promise<void>
}
