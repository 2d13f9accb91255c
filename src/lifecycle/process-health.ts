export type ProcessState = 'starting' | 'ready' | 'restarting' | 'failed' | 'stopped'

/** How a supervised process stands. */
export type ProcessHealth = Readonly<{
  state: ProcessState
  pid: number | null
  restarts: number
  /** Why it is not ready; empty when it is. */
  reason: string
}>

/** The same of a process that its first client starts: `idle` until then. */
export type WokenHealth = Omit<ProcessHealth, 'state'> & Readonly<{ state: ProcessState | 'idle' }>
