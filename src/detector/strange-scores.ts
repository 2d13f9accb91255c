import type { Activation } from './heads/activation.js'
import type { Candidates } from './heads/candidates.js'
import { defaultHeadOptions, type HeadPlan, type ScoreBlock } from './heads/head.js'

/** Numbers of one detection. */
const rowLength = 6
/** Scores may be above 1 by so much, and are 1 then: what is rounded to 8 bits is. */
const tolerance = 1 / 64

/** What a model has given in the place of scores, since it was loaded. */
export type StrangeScores = Readonly<{
  /** Of the numbers that are none: the lowest and the highest, both 0 where there was none. */
  lowest: number
  highest: number
  /** There was something that is no number, or infinite. */
  notNumbers: boolean
}>

/** Whether a number may be published as a score. */
export function isScore(score: number): boolean {
  return score >= 0 && score <= 1 + tolerance
}

/** Watches the scores of a model: what is outside of 0..1 is left out, and kept in mind. */
export class ScoreWatch {
  #lowest = 0
  #highest = 0
  #notNumbers = false

  constructor(readonly activation: Activation) {}

  static of({ options = defaultHeadOptions }: HeadPlan): ScoreWatch {
    return new ScoreWatch(options.activation)
  }

  /** Since it was loaded. */
  get strange(): StrangeScores | undefined {
    if (this.#lowest === 0 && this.#highest === 0 && !this.#notNumbers) return undefined
    return { lowest: this.#lowest, highest: this.#highest, notNumbers: this.#notNumbers }
  }

  /** Looks at all scores of a frame, as the model gives them. @param blocks - where they are. */
  look(outputs: readonly Float32Array[], blocks: readonly ScoreBlock[]): void {
    const most = this.activation === 'percent' ? 100 : 1
    const isFree = this.activation === 'sigmoid' || this.activation === 'softmax'
    const [least, highest] = isFree ? [-Infinity, Infinity] : [-most * tolerance, most * (1 + tolerance)]
    for (const { output, start, rows, rowStep, columns, columnStep } of blocks) {
      const values = outputs[output]!
      for (let row = 0, at = start; row < rows; row++, at += rowStep)
        for (let column = 0, from = at; column < columns; column++, from += columnStep) {
          const value = values[from]!
          if (!(value >= least && value <= highest)) this.#note(value)
        }
    }
  }

  /** Leaves out boxes whose score is outside of 0..1 or whose place is no number. @returns how many. */
  keepSound(found: Candidates): number {
    const { scores, boxes } = found
    const before = found.count
    found.keep((index) => {
      const score = scores[index]!
      if (!isScore(score)) {
        this.#note(score)
        return false
      }
      scores[index] = Math.min(score, 1)
      const at = index * 4
      if (Number.isFinite(boxes[at]! + boxes[at + 1]! + boxes[at + 2]! + boxes[at + 3]!)) return true
      this.#note(Number.NaN)
      return false
    })
    return before - found.count
  }

  #note(value: number): void {
    if (!Number.isFinite(value)) this.#notNumbers = true
    else if (value < this.#lowest) this.#lowest = value
    else if (value > this.#highest) this.#highest = value
  }
}

/**
 * What stands in the place of scores in rows of boxes; they are no numbers where it is the place of a box that is none.
 *
 * @param scoreAt - place of the score in a row.
 */
export function strangeIn(rows: Float32Array, scoreAt: number): StrangeScores {
  const watch = new ScoreWatch('none')
  const count = rows.length / rowLength
  watch.look(
    [rows],
    [{ output: 0, start: scoreAt, rows: count, rowStep: rowLength, columns: 1, columnStep: 1 }],
  )
  return watch.strange ?? { lowest: 0, highest: 0, notNumbers: true }
}

/** What is wrong with the scores of a model and what to write, a sentence without its subject. */
export function strangeScoresText({ lowest, highest, notNumbers }: StrangeScores): string {
  if (lowest === 0 && highest === 0)
    return 'gives scores or boxes that are no numbers, which are left out: export it again, in float32 if it is float16'
  const range = `gives scores from ${rounded(lowest)} to ${rounded(highest)}${notNumbers ? ', and some that are no numbers' : ''}: those outside of 0..1 are left out`
  const setting =
    lowest < 0
      ? 'gantry.head_activation to "sigmoid" in its config.pbtxt ("softmax" if the scores of a box add up to 1), if the last layer was left out of the export'
      : 'gantry.head_activation to "percent" in its config.pbtxt if they are percentages, to "sigmoid" if the last layer was left out of the export'
  return `${range}; set ${setting}; else gantry.head is another one`
}

function rounded(value: number): string {
  return String(Number(value.toPrecision(3)))
}
