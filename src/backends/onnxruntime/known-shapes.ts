import type { RunShapes } from '../../runtime/statistics.js'
import type { PackedInput } from '../pack-inputs.js'

/** Of more no account is kept: they are not called first any more. */
const mostKnown = 1_024

/**
 * Which shapes the sessions of an instance have run with, by a number made of each: a run with those of the run before allocates nothing.
 */
export class KnownShapes {
  readonly #known = new Set<number>()
  /** Of the last run of each session. */
  readonly #last = new Map<number, number>()

  /**
   * @param rows - that the batch is filled up to.
   * @param session - its number, of few.
   * @returns `undefined` where the session ran with the same shapes just before.
   */
  next(inputs: readonly PackedInput[], rows: number, session: number): RunShapes | undefined {
    let shapes = rows
    // The order of inputs is the client's.
    for (const { name, shape } of inputs) shapes = (shapes + printOf(name, shape)) | 0
    if (this.#last.get(session) === shapes) return undefined
    this.#last.set(session, shapes)
    if (this.#known.has(shapes) || this.#known.size >= mostKnown) return 'changed'
    this.#known.add(shapes)
    return 'first'
  }
}

/** Without the first dimension, which the rows stand for. */
function printOf(name: string, shape: readonly number[]): number {
  let print = name.length
  for (let index = 1; index < shape.length; index += 1) print = Math.imul(print ^ shape[index]!, 0x01000193)
  return print
}
