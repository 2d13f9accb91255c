import type { StopSignals } from './stop-signals.js'
import type { Terminal } from './terminal.js'

/** What a command is given, and how it says how it ended. */
export type CommandContext = Readonly<{
  terminal: Terminal
  /** Heard by commands that run until they are stopped. */
  signals: StopSignals
  exit(code: number): void
}>
