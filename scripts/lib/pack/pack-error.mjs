/** Why nothing was packed, in words for who asked; `usage` where the command line is to blame. */
export class PackError extends Error {
  constructor(message, { usage = false } = {}) {
    super(message)
    this.usage = usage
  }
}
