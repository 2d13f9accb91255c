import type { SizePx } from '../../vision/letterbox.js'
import { bestClassAt, leastBefore, scoreInRow, softmaxMean } from './activation.js'
import type { Candidates } from './candidates.js'
import {
  type CellGrid,
  type CellLayout,
  cellLayouts,
  type CellPlace,
  cellPlace,
  cellsIn,
  gridOf,
  numbersOf,
} from './cell-layout.js'
import type { Head, HeadOptions, HeadPlan, ScoreBlock } from './head.js'

/** The cells of one stride. */
type Level = Readonly<{ stride: number; grid: CellGrid; scores: CellPlace; distances: CellPlace }>

/**
 * Class scores and, for each side of the box, a distribution over distances from the cell's point, in cells: NanoDet and PicoDet.
 *
 * Each stride has an output of scores and one of distances, or one with both beside each other; or all strides follow one another in one
 * output of each, or of both. NanoDet rounds the last, partial cells up.
 *
 * @see RangiLyu/nanodet, nanodet/model/head/gfl_head.py and nanodet_plus_head.py; PaddleDetection, ppdet/modeling/heads/pico_head.py
 */
export class NanodetHead implements Head {
  readonly needsNms = true

  private constructor(
    readonly classes: number,
    readonly levels: readonly Level[],
    readonly options: HeadOptions,
  ) {}

  /** @returns `undefined` if the shapes fit neither the plan nor each other. */
  static of(
    { classes = 0, strides, cellLayout }: HeadPlan,
    input: SizePx,
    shapes: readonly (readonly number[])[],
    options: HeadOptions,
  ): NanodetHead | undefined {
    const grids = strides.map((stride) => gridOf(input, stride))
    const layouts = cellLayout === undefined ? cellLayouts : [cellLayout]
    for (const layout of layouts) {
      const places = placesOf(grids, shapes, layout, classes, 4 * (options.regMax + 1))
      if (places === undefined) continue
      const levels = places.map((place, level) => ({
        ...place,
        stride: strides[level]!,
        grid: grids[level]!,
      }))
      return levels.length === 0 ? undefined : new NanodetHead(classes, levels, options)
    }
    return undefined
  }

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    const least = leastBefore(minScore, this.options.activation)
    for (const level of this.levels) this.#decodeLevel(outputs, frame, level, least, minScore, out)
  }

  scoreBlocks(frame: number): readonly ScoreBlock[] {
    return this.levels.map(({ grid, scores: { output, frameStep, start, cellStep, valueStep } }) => ({
      output,
      start: frame * frameStep + start,
      rows: grid.columns * grid.rows,
      rowStep: cellStep,
      columns: this.classes,
      columnStep: valueStep,
    }))
  }

  #decodeLevel(
    outputs: readonly Float32Array[],
    frame: number,
    { stride, grid, scores, distances }: Level,
    least: number,
    minScore: number,
    out: Candidates,
  ): void {
    const { activation, offset, regMax } = this.options
    const values = outputs[scores.output]!
    const sides = outputs[distances.output]!
    const bins = regMax + 1
    const cells = grid.columns * grid.rows
    let at = frame * scores.frameStep + scores.start
    let sideAt = frame * distances.frameStep + distances.start
    for (let cell = 0; cell < cells; cell++, at += scores.cellStep, sideAt += distances.cellStep) {
      const best = bestClassAt(values, at, this.classes, scores.valueStep)
      if (!(values[at + best * scores.valueStep]! >= least)) continue
      const score = scoreInRow(values, at, this.classes, best, activation, scores.valueStep)
      if (!(score >= minScore)) continue
      const x = ((cell % grid.columns) + offset) * stride
      const y = (Math.floor(cell / grid.columns) + offset) * stride
      const side = (index: number) =>
        softmaxMean(sides, sideAt + index * bins * distances.valueStep, bins, distances.valueStep) * stride
      out.pushCorners(x - side(0), y - side(1), x + side(2), y + side(3), score, best)
    }
  }
}

type Places = readonly Readonly<{ scores: CellPlace; distances: CellPlace }>[]

function placesOf(
  grids: readonly CellGrid[],
  shapes: readonly (readonly number[])[],
  layout: CellLayout,
  classes: number,
  bins: number,
): Places | undefined {
  const both = classes + bins
  const has = (output: number, numbers: number, of: readonly CellGrid[]) =>
    shapes[output] !== undefined && numbersOf(shapes[output], layout, of) === numbers
  if (
    shapes.length === 2 * grids.length &&
    grids.every((grid, level) => has(2 * level, classes, [grid]) && has(2 * level + 1, bins, [grid]))
  )
    return grids.map((grid, level) => {
      const cells = cellsIn([grid])
      return {
        scores: cellPlace(2 * level, layout, { cells, numbers: classes }),
        distances: cellPlace(2 * level + 1, layout, { cells, numbers: bins }),
      }
    })
  if (shapes.length === grids.length && grids.every((grid, level) => has(level, both, [grid])))
    return grids.map((grid, level) => {
      const cells = cellsIn([grid])
      return {
        scores: cellPlace(level, layout, { cells, numbers: both }),
        distances: cellPlace(level, layout, { cells, numbers: both, from: classes }),
      }
    })
  const cells = cellsIn(grids)
  if (shapes.length === 2 && has(0, classes, grids) && has(1, bins, grids))
    return spread(grids, {
      scores: cellPlace(0, layout, { cells, numbers: classes }),
      distances: cellPlace(1, layout, { cells, numbers: bins }),
    })
  if (shapes.length === 1 && has(0, both, grids))
    return spread(grids, {
      scores: cellPlace(0, layout, { cells, numbers: both }),
      distances: cellPlace(0, layout, { cells, numbers: both, from: classes }),
    })
  return undefined
}

/** Grids that follow one another. */
function spread(grids: readonly CellGrid[], { scores, distances }: Places[number]): Places {
  let before = 0
  return grids.map((grid) => {
    const behind = (place: CellPlace) => ({ ...place, start: place.start + before * place.cellStep })
    const places = { scores: behind(scores), distances: behind(distances) }
    before += cellsIn([grid])
    return places
  })
}
