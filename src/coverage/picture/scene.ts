import { planeSize, type PicturePlane } from './picture-plane.js'
import { deviationOf, emptyShare, planeFigures, type PlaneFigures } from './plane-figures.js'
import { correlationWithin, forEachCell, meanWithin, planeParts, type PlanePart } from './plane-parts.js'

const { across, down } = planeSize
/** Around a cell, whose mean is taken off: what light makes brighter as a whole is no structure. */
const aroundCells = 3
/** Two pictures of one part are alike from here on: the clips of test/bench/coverage-causes.bench.ts have over 0.8 where nobody walks. */
const alikeFrom = 0.45
/** Variance of a part in which nothing stands: two steps of brightness are noise. */
const flatVariance = 4
/** Less of the structure of a part is none: what shines through a sheet of paper, or through fog, shows nobody. */
const leastStructure = 0.02
/** By so much a cell may seem to be otherwise at once: of its detail, since what is noise of a dim hour is not detail, and of its brightness. */
const mostMore = 0.2
const mostLuma = 20

/** What stands in a scene, without its light: what is brighter than around it, and where there is detail. */
export type Scene = Readonly<{ luma: Float32Array; structure: Float32Array; detail: Float32Array }>

/** The planes are its own. */
export function sceneOf({ luma, detail }: PicturePlane): Scene {
  return {
    luma: Float32Array.from(luma),
    structure: withoutSurroundings(luma),
    detail: Float32Array.from(detail),
  }
}

/** What most of these pictures show in each cell, whoever walks or drives through some of them. */
export function middleOf(pictures: readonly Scene[]): Scene {
  const middle = (key: keyof Scene) =>
    Float32Array.from({ length: across * down }, (_, cell) => {
      const values = pictures.map((picture) => picture[key][cell]!).sort((one, other) => one - other)
      return values[values.length >> 1] ?? 0
    })
  return { luma: middle('luma'), structure: middle('structure'), detail: middle('detail') }
}

/** Moves a scene a small part of the way to a picture, in place; what drives through it moves it hardly. */
export function learn(scene: Scene, picture: Scene, share: number): void {
  for (const key of ['luma', 'structure', 'detail'] as const) {
    const [into, values] = [scene[key], picture[key]]
    for (let cell = 0; cell < into.length; cell += 1) {
      const most = key === 'detail' ? into[cell]! * mostMore + 0.1 : mostLuma
      into[cell]! += Math.max(-most, Math.min(most, values[cell]! - into[cell]!)) * share
    }
  }
}

/** How a picture stands to the scene that it should show. Shares are 0-1. */
export type SceneLook = Readonly<{
  /** See `likeness`. */
  same: number
  /** Of the parts in which something is in the scene, those in which nothing is; of as many, wherever they are. */
  emptied: number
  /** How bright it is where it shows the same, beside the scene. */
  brightness: number
  /** What is left of the detail where it shows the same, by the light that there is. */
  detail: number
  /** The same of how much more detail is where things stand than between them, which noise does not raise. */
  sharpness: number
  /** What is left of the detail beyond noise, wherever it is. */
  sharp: number
}>

/** @param is - the figures of the picture. */
export function compare(scene: Scene, picture: Scene, is: PlaneFigures): SceneLook {
  const { standing, same } = partsOf(scene, picture, is.noise)
  const was = planeFigures(scene)
  const wasEmpty = emptyShare(was)
  const light = lightOf(scene, picture, same)
  return {
    same: shareOf(same, standing),
    emptied: (emptyShare(is, is.noise) - wasEmpty) / Math.max(1 / planeParts.length, 1 - wasEmpty),
    brightness: ratio(sumWithin(picture.luma, same), sumWithin(scene.luma, same)),
    detail: ratio(sumWithin(picture.detail, same), sumWithin(scene.detail, same)) / light,
    sharpness: ratio(contrastOf(picture, scene, same), contrastOf(scene, scene, same)) / light,
    sharp: ratio(is.sharp, was.sharp),
  }
}

/** Of the parts in which something stands in one picture, those that show the same in another one; 1 where nothing stands in any. */
export function likeness(one: Scene, other: Scene): number {
  const { standing, same } = partsOf(one, other, 0)
  return shareOf(same, standing)
}

/** @param noise - of the picture. */
function partsOf(
  scene: Scene,
  picture: Scene,
  noise: number,
): Readonly<{ standing: PlanePart[]; same: PlanePart[] }> {
  const standing = planeParts.filter((part) => variance(scene.structure, part) >= flatVariance)
  return { standing, same: standing.filter((part) => isAlike(scene, picture, part, noise)) }
}

function shareOf(same: readonly PlanePart[], standing: readonly PlanePart[]): number {
  return standing.length === 0 ? 1 : same.length / standing.length
}

/**
 * Whether what is brightest in a dark picture is bright in the scene too, in its deviations from the mean: lamps and windows are, and what lies
 * over a lens knows nothing of the scene.
 */
export function echo(scene: Scene, picture: Scene): number {
  const order = [...picture.luma.keys()].sort((one, other) => picture.luma[other]! - picture.luma[one]!)
  const brightest = order.slice(0, Math.ceil(order.length / 20))
  const mean = scene.luma.reduce((sum, value) => sum + value, 0) / scene.luma.length
  const deviation = Math.sqrt(
    scene.luma.reduce((sum, value) => sum + (value - mean) ** 2, 0) / scene.luma.length,
  )
  const there = brightest.reduce((sum, cell) => sum + scene.luma[cell]!, 0) / brightest.length
  return (there - mean) / Math.max(1, deviation)
}

function isAlike(scene: Scene, picture: Scene, part: PlanePart, noise: number): boolean {
  const left = variance(picture.structure, part) - noise
  if (left < variance(scene.structure, part) * leastStructure) return false
  return (
    correlationWithin(scene.structure, picture.structure, part) >= alikeFrom ||
    correlationWithin(scene.detail, picture.detail, part) >= alikeFrom
  )
}

/** How much of the light of the scene there is, by how much its parts differ, which blur leaves: at most all of it, at least a fifth. */
function lightOf(scene: Scene, picture: Scene, same: readonly PlanePart[]): number {
  const contrast = ({ luma }: Scene) => deviationOf(same.map((part) => meanWithin(luma, part)))
  return Math.min(1, Math.max(0.2, ratio(contrast(picture), contrast(scene))))
}

function ratio(value: number, of: number): number {
  return of <= 0 ? 1 : value / of
}

function sumWithin(values: Float32Array, same: readonly PlanePart[]): number {
  let sum = 0
  for (const part of same) forEachCell(part, (cell) => (sum += values[cell]!))
  return sum
}

/** By how much the cells that have more detail than the mean of their part in the scene exceed the others. */
function contrastOf(of: Scene, scene: Scene, same: readonly PlanePart[]): number {
  return same.reduce((sum, part) => {
    const mean = meanWithin(scene.detail, part)
    let [rich, poor, riches] = [0, 0, 0]
    forEachCell(part, (cell) => {
      const isRich = scene.detail[cell]! > mean
      riches += isRich ? 1 : 0
      if (isRich) rich += of.detail[cell]!
      else poor += of.detail[cell]!
    })
    const poors = part.width * part.height - riches
    return sum + (riches === 0 || poors === 0 ? 0 : rich / riches - poor / poors)
  }, 0)
}

function variance(structure: Float32Array, part: PlanePart): number {
  let sum = 0
  forEachCell(part, (cell) => (sum += structure[cell]! ** 2))
  return sum / (part.width * part.height)
}

function withoutSurroundings(luma: Float32Array): Float32Array {
  const wide = across + 1
  const sums = new Float64Array(wide * (down + 1))
  for (let y = 0; y < down; y += 1)
    for (let x = 0; x < across; x += 1)
      sums[(y + 1) * wide + x + 1] =
        luma[y * across + x]! + sums[y * wide + x + 1]! + sums[(y + 1) * wide + x]! - sums[y * wide + x]!
  const structure = new Float32Array(luma.length)
  for (let y = 0; y < down; y += 1)
    for (let x = 0; x < across; x += 1) {
      const [left, right] = [Math.max(0, x - aroundCells), Math.min(across, x + aroundCells + 1)]
      const [top, bottom] = [Math.max(0, y - aroundCells), Math.min(down, y + aroundCells + 1)]
      const sum =
        sums[bottom * wide + right]! -
        sums[top * wide + right]! -
        sums[bottom * wide + left]! +
        sums[top * wide + left]!
      structure[y * across + x] = luma[y * across + x]! - sum / ((right - left) * (bottom - top))
    }
  return structure
}
