import type { Log } from '../lifecycle/log.js'
import { type StrangeScores, strangeScoresText } from './strange-scores.js'

/** More classes without a name than this are not told one by one. */
const mostTold = 20

/** Tells once what a model gives that its labels do not account for, as every name may be one line off, and what it gives in place of scores. */
export class ClassDoubts {
  readonly #told = new Set<number>()
  #toldBelow = false
  #scores: StrangeScores | undefined
  #scoresText = ''

  /**
   * @param labelsFrom - empty where the model has no labels: then nothing is expected of them.
   * @param firstClass - number of the class of the first label.
   */
  constructor(
    readonly model: string,
    readonly labelsFrom: string,
    readonly firstClass: number,
    readonly log: Log,
  ) {}

  /** A class for which the list has no name. */
  unnamed(line: number): void {
    if (this.labelsFrom === '' || this.#told.has(line) || this.#told.size >= mostTold) return
    this.#told.add(line)
    this.log.warn(
      { model: this.model, class: line + this.firstClass },
      `the model gives a class that ${this.labelsFrom} does not name: it is published as class_${line}; if other names are wrong too, gantry.head_first_class says where the list begins`,
    )
  }

  /** A class before that of the first label, in a family that counts from there. */
  belowFirst(): void {
    if (this.#toldBelow) return
    this.#toldBelow = true
    this.log.error(
      { model: this.model, firstClass: this.firstClass },
      `the model gives a class below ${this.firstClass}, the first that is named: it is left out; if it is one, every name is a line off: set gantry.head_first_class to "0"`,
    )
  }

  /** What is no score. @returns the sentence that says so. */
  scores(strange: StrangeScores): string {
    const told = this.#scores
    if (told !== undefined && isSame(told, strange)) return this.#scoresText
    this.#scores = strange
    this.#scoresText = `model "${this.model}" ${strangeScoresText(strange)}`
    if (told === undefined) this.log.error({ model: this.model, ...strange }, this.#scoresText)
    return this.#scoresText
  }
}

function isSame(a: StrangeScores, b: StrangeScores): boolean {
  return a.lowest === b.lowest && a.highest === b.highest && a.notNumbers === b.notNumbers
}
