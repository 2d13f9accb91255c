import type { Terminal } from './terminal.js'

/** Between two lines where nothing can be rewritten. */
const lineEveryMs = 10_000

/**
 * How far a command is, on stderr: one line that is rewritten on a terminal, a line every ten seconds elsewhere, nothing when it is told to
 * be quiet. Lines of output go between by {@link around}.
 */
export class Progress {
  #shown = ''
  #lastMs = -Infinity

  constructor(
    readonly terminal: Pick<Terminal, 'err' | 'rewrite'>,
    readonly quiet: boolean,
    readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** @param text - one line. */
  show(text: string): void {
    if (this.quiet) return
    const { rewrite, err } = this.terminal
    if (rewrite !== undefined) {
      this.#shown = text
      return rewrite(text)
    }
    if (this.nowMs() - this.#lastMs < lineEveryMs) return
    this.#lastMs = this.nowMs()
    err(text)
  }

  /** Takes the line away while something else is written. */
  around(write: () => void): void {
    if (this.#shown !== '') this.terminal.rewrite?.('')
    write()
    if (this.#shown !== '') this.terminal.rewrite?.(this.#shown)
  }

  /** There is no more to tell. */
  end(): void {
    if (this.#shown !== '') this.terminal.rewrite?.('')
    this.#shown = ''
  }
}
