import {
  type AreaRange,
  areaRanges,
  type Found,
  iouThresholds,
  MatchedPicture,
  mostDetections,
  type PictureMatch,
  type Truth,
} from './coco-match.js'
import { type Curve, curveOf, orderOf, rank, type Ranking } from './precision-recall.js'

/** What one picture has of one class. */
export type ClassPicture = Readonly<{ truths: readonly Truth[]; found: readonly Found[] }>

/** By class, then by picture; classes and pictures in a fixed order. */
export type ClassPictures = readonly (readonly ClassPicture[])[]

/** Numbers of detections of a picture and class that count, of which recall is told. */
export const detectionLimitsCounted = [1, 10, mostDetections] as const

/** The twelve numbers of COCO, each 0..1; undefined where no truth counts. */
export type CocoSummary = Readonly<{
  map: number | undefined
  ap50: number | undefined
  ap75: number | undefined
  mapSmall: number | undefined
  mapMedium: number | undefined
  mapLarge: number | undefined
  ar1: number | undefined
  ar10: number | undefined
  ar100: number | undefined
  arSmall: number | undefined
  arMedium: number | undefined
  arLarge: number | undefined
}>

/** Curves of one class, by range of areas, number of detections that count and IoU threshold; undefined where nothing is to be found. */
export type ClassCurves = Readonly<{
  at(range: AreaRange['name'], most: number, threshold: number): Curve | undefined
  /** Everything, areas of all sizes, the most detections. */
  ranking: Ranking
  pictures: readonly (MatchedPicture | undefined)[]
  /** Of all areas, by picture. */
  matches: readonly (PictureMatch | undefined)[]
}>

/** Curves of every class. @see pycocotools `COCOeval.evaluate` and `accumulate`, whose numbers these are */
export function cocoCurves(classes: ClassPictures): readonly ClassCurves[] {
  return classes.map((pictures) => curvesOfClass(pictures))
}

function curvesOfClass(pictures: readonly ClassPicture[]): ClassCurves {
  const matched = pictures.map(({ truths, found }) =>
    truths.length + found.length === 0 ? undefined : new MatchedPicture(truths, found),
  )
  const curves = new Map<string, Curve | undefined>()
  const all = matched.map((picture) => picture?.match(areaRanges[0]!))
  const order = orderOf(all)
  for (const range of areaRanges) {
    const matches = range === areaRanges[0] ? all : matched.map((picture) => picture?.match(range))
    for (const most of detectionLimitsCounted) {
      const ranked = rank(order, matches, most)
      iouThresholds.forEach((_, threshold) =>
        curves.set(`${range.name} ${most} ${threshold}`, curveOf(ranked, threshold)),
      )
    }
  }
  return {
    at: (range, most, threshold) => curves.get(`${range} ${most} ${threshold}`),
    ranking: rank(order, all, mostDetections),
    pictures: matched,
    matches: all,
  }
}

/** @see pycocotools `COCOeval.summarize` */
export function cocoSummary(classes: readonly ClassCurves[]): CocoSummary {
  const ap = (range: AreaRange['name'], thresholds = allThresholds) =>
    mean(
      classes.flatMap((each) =>
        thresholds.flatMap((threshold) => [...(each.at(range, mostDetections, threshold)?.precision ?? [])]),
      ),
    )
  const ar = (range: AreaRange['name'], most: number) =>
    mean(
      classes.flatMap((each) =>
        allThresholds.flatMap((threshold) => each.at(range, most, threshold)?.recall ?? []),
      ),
    )
  return {
    map: ap('all'),
    ap50: ap('all', [0]),
    ap75: ap('all', [5]),
    mapSmall: ap('small'),
    mapMedium: ap('medium'),
    mapLarge: ap('large'),
    ar1: ar('all', 1),
    ar10: ar('all', 10),
    ar100: ar('all', mostDetections),
    arSmall: ar('small', mostDetections),
    arMedium: ar('medium', mostDetections),
    arLarge: ar('large', mostDetections),
  }
}

const allThresholds = iouThresholds.map((_, index) => index)

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
}
