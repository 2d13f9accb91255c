/**
 * What the loop reads and writes by itself: about a millisecond of work. Threads do the rest, and to hand it over costs a tenth of that.
 */
export const mostHere = {
  /** JSON, elements in lists, and the tensors of an answer as JSON. */
  bytes: 64 * 1024,
  /** Elements of BYTES whose lengths are looked at. */
  elements: 32 * 1024,
  /** Fields of a message. */
  fields: 8 * 1024,
} as const

/** A request whose reading would hold the loop. */
export class TooLongHereError extends Error {
  constructor() {
    super('too long to be read on the loop')
    this.name = 'TooLongHereError'
  }
}
