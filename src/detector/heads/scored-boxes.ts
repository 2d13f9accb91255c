import type { SizePx } from '../../vision/letterbox.js'
import { bestClassAt, scoreInRow } from './activation.js'
import { pushBox } from './box-form.js'
import type { Candidates } from './candidates.js'
import type { Head, HeadOptions, ScoreBlock } from './head.js'

/** Parts of a prior's size and place by which offsets are multiplied, as SSD is trained. */
const centreVariance = 0.1
const sizeVariance = 0.2

/**
 * A row of class scores beside each box: DETR without its postprocessing, and SSD.
 *
 * With priors, the boxes are offsets from them: centre and size of a prior in 0..1.
 */
export class ScoredBoxesHead implements Head {
  readonly #decoded = new Float32Array(4)

  /**
   * @param boxes - in each picture.
   * @param columns - of scores of each box, the background among them.
   */
  constructor(
    readonly needsNms: boolean,
    readonly boxes: number,
    readonly columns: number,
    readonly input: SizePx,
    readonly options: HeadOptions,
    /** `[N, columns, boxes]` in place of `[N, boxes, columns]`. */
    readonly isPlanar = false,
  ) {}

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    const [scores, boxes, priors] = outputs
    if (scores === undefined || boxes === undefined) return
    const { columns, options, input } = this
    const { rowStep, columnStep } = this.#steps
    const first = options.background === 'first' ? 1 : 0
    const classes = columns - (options.background === 'none' ? 0 : 1)
    for (let box = 0; box < this.boxes; box++) {
      const at = frame * this.boxes * columns + box * rowStep
      const best = first + bestClassAt(scores, at + first * columnStep, classes, columnStep)
      const score = scoreInRow(scores, at, columns, best, options.activation, columnStep)
      if (!(score >= minScore)) continue
      const boxAt = (frame * this.boxes + box) * 4
      if (priors === undefined) pushBox(out, boxes, boxAt, options, input, score, best)
      else {
        this.#fromPrior(boxes, boxAt, priors, box * 4)
        pushBox(out, this.#decoded, 0, { box: 'cxcywh', unit: options.unit }, input, score, best)
      }
    }
  }

  scoreBlocks(frame: number): readonly ScoreBlock[] {
    const { boxes, columns } = this
    return [{ output: 0, start: frame * boxes * columns, rows: boxes, columns, ...this.#steps }]
  }

  get #steps(): Pick<ScoreBlock, 'rowStep' | 'columnStep'> {
    return this.isPlanar ? { rowStep: 1, columnStep: this.boxes } : { rowStep: this.columns, columnStep: 1 }
  }

  #fromPrior(offsets: Float32Array, at: number, priors: Float32Array, prior: number): void {
    const width = priors[prior + 2]!
    const height = priors[prior + 3]!
    this.#decoded[0] = priors[prior]! + offsets[at]! * centreVariance * width
    this.#decoded[1] = priors[prior + 1]! + offsets[at + 1]! * centreVariance * height
    this.#decoded[2] = width * Math.exp(offsets[at + 2]! * sizeVariance)
    this.#decoded[3] = height * Math.exp(offsets[at + 3]! * sizeVariance)
  }
}
