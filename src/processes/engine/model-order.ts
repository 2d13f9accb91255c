/** Frames of a camera that one model has, between those of the model before and of the one behind it. */
type Turn<Model> = { readonly model: Model; open: number; readonly waiting: (() => void)[] }

/**
 * Lets the results of a camera that goes over to another model leave in order: none of the new one before the last of the old one. Within a
 * model its detector keeps the order.
 */
export class ModelOrder<Model> {
  /** Oldest first; one, or none, but while the camera goes over. */
  readonly #turns: Turn<Model>[] = []
  readonly #places = new Map<number, Turn<Model>>()

  /** The frame of that number goes to a model. */
  enter(seq: number, model: Model): void {
    const last = this.#turns.at(-1)
    const turn = last?.model === model ? last : { model, open: 0, waiting: [] }
    if (turn !== last) this.#turns.push(turn)
    turn.open += 1
    this.#places.set(seq, turn)
  }

  /** It has ended. @param tell - called once, as soon as every frame of earlier models has ended; at once for a number that is not known. */
  end(seq: number, tell: () => void): void {
    const turn = this.#places.get(seq)
    if (turn === undefined) return tell()
    this.#places.delete(seq)
    turn.open -= 1
    if (turn === this.#turns[0]) tell()
    else turn.waiting.push(tell)
    this.#go()
  }

  #go(): void {
    for (let first = this.#turns[0]; first !== undefined; first = this.#turns[0]) {
      for (const tell of first.waiting.splice(0)) tell()
      if (first.open > 0) return
      this.#turns.shift()
    }
  }
}
