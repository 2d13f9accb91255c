import type { Terminal } from './terminal.js'

/** What a command is given, and how it says how it ended. */
export type CommandContext = Readonly<{ terminal: Terminal; exit(code: number): void }>
