import type { CocoBox } from './coco-box.js'
import type { LabelledPicture } from './labelled-set.js'
import type { ModelRun, ScoredSample } from './model-run.js'
import type { ModelScores } from './model-scores.js'

/** A box to be drawn. `told`: what the picture is shown for. */
export type DrawnBox = Readonly<{
  kind: 'truth' | 'right' | 'missed' | 'alarm'
  label: string
  score?: number
  box: CocoBox
  told: boolean
}>

/** A picture on which a model was wrong. */
export type Example = Readonly<{
  picture: LabelledPicture
  size: ScoredSample['size']
  label: string
  /** How sure the model was of a false alarm; of a miss, its share of the picture. */
  weight: number
  boxes: readonly DrawnBox[]
}>

export type Examples = Readonly<{ alarms: readonly Example[]; misses: readonly Example[] }>

type Fault = Readonly<{ sample: ScoredSample; weight: number; box: CocoBox; class: number }>

/**
 * The pictures with the worst faults at IoU 0.5: what was found with the highest scores and is not there, and the largest things that were
 * not found with at least `shownScore`. A picture is shown once for each kind.
 *
 * @param most - pictures of each kind.
 */
export function worstExamples(
  { samples }: ModelRun,
  { curves }: ModelScores,
  labels: readonly string[],
  { shownScore, most }: Readonly<{ shownScore: number; most: number }>,
): Examples {
  const list = [...samples.values()]
  const faults = list.map((sample, index) => faultsOf(sample, index, curves, shownScore))
  const shown = (kind: 'alarms' | 'misses') =>
    faults
      .flatMap((each) => worst(each[kind]) ?? [])
      .sort((a, b) => b.weight - a.weight)
      .slice(0, most)
      .map((fault) => example(fault, kind, faults[list.indexOf(fault.sample)]!, labels))
  return { alarms: shown('alarms'), misses: shown('misses') }
}

type Faults = Readonly<{ alarms: readonly Fault[]; misses: readonly Fault[]; right: readonly Fault[] }>

function faultsOf(
  sample: ScoredSample,
  index: number,
  curves: ModelScores['curves'],
  shownScore: number,
): Faults {
  const { widthPx, heightPx } = sample.size
  const alarms: Fault[] = []
  const misses: Fault[] = []
  const right: Fault[] = []
  curves.forEach(({ pictures, matches }, place) => {
    const picture = pictures[index]
    const match = matches[index]
    if (picture === undefined || match === undefined) return
    const taken = new Set<number>()
    picture.found.forEach(({ box, score }, at) => {
      if (score < shownScore) return
      if (match.truthOf[at]! >= 0) taken.add(match.truthOf[at]!)
      if (match.ignored[at] === 1) return
      const fault = { sample, weight: score, box, class: place }
      if (match.matched[at] === 1) right.push(fault)
      else alarms.push(fault)
    })
    picture.truths.forEach(({ box, areaPx, crowd }, at) => {
      if (crowd || taken.has(at)) return
      misses.push({ sample, weight: areaPx / (widthPx * heightPx), box, class: place })
    })
  })
  return { alarms, misses, right }
}

function worst(faults: readonly Fault[]): Fault | undefined {
  return faults.toSorted((a, b) => b.weight - a.weight)[0]
}

function example(
  fault: Fault,
  kind: 'alarms' | 'misses',
  { alarms, misses, right }: Faults,
  labels: readonly string[],
): Example {
  const { sample } = fault
  const drawn = (faults: readonly Fault[], as: DrawnBox['kind']) =>
    faults.map((each): DrawnBox => ({
      kind: as,
      label: labels[each.class]!,
      ...(as === 'missed' ? {} : { score: each.weight }),
      box: each.box,
      told: each === fault,
    }))
  const truths = sample.truths
    .filter(({ crowd }) => !crowd)
    .map((truth): DrawnBox => ({ kind: 'truth', label: labels[truth.class]!, box: truth.box, told: false }))
  return {
    picture: sample.picture,
    size: sample.size,
    label: labels[fault.class]!,
    weight: fault.weight,
    boxes: [
      ...(kind === 'alarms' ? truths : drawn(misses, 'missed')),
      ...drawn(right, 'right'),
      ...(kind === 'alarms' ? drawn(alarms, 'alarm') : []),
    ],
  }
}
