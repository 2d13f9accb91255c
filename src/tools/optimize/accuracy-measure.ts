import type { OnnxModel } from '../../repository/onnx-model.js'
import { readLabelledSet, type SetChoice } from '../eval/read-set.js'
import { type ClassWish, scoredClasses } from '../eval/scored-classes.js'
import { demoClips, type PictureOrigin, takePictures } from '../transform/frames.js'
import { planDraft } from '../transform/model-draft.js'
import type { AccuracyMeasure } from './form-accuracy.js'
import { OptimizeSettingError } from './optimize-errors.js'

export type AccuracyWish = Readonly<{
  model: OnnxModel
  /** Absent: forms are compared with the model as it is. */
  set: SetChoice | undefined
  wish: ClassWish
  /** Of comparisons; the demo's clips where there are none. */
  frames: readonly PictureOrigin[]
  count: number
  /** For pictures that are taken from clips and cameras. */
  folder: string
  signal: AbortSignal
}>

/**
 * How the accuracy of forms is told; undefined for a model that is no detector, whose forms are judged by the proofs of their steps.
 *
 * @throws OptimizeSettingError for a labelled set of a model that is no detector; LabelsError; ModelTransformError for pictures that are
 *   not there
 */
export async function accuracyMeasure({
  model,
  set,
  wish,
  frames,
  count,
  folder,
  signal,
}: AccuracyWish): Promise<AccuracyMeasure | undefined> {
  const { detector } = planDraft(model)
  if (set !== undefined) {
    if (detector === undefined)
      throw new OptimizeSettingError(
        `--data is for detectors, and no head is known by the outputs of model "${model.name}"`,
        'Set gantry.head in config.pbtxt (docs/models.md), or leave out --data.',
      )
    const labelled = readLabelledSet(set)
    // Labels that do not fit are told before forms are made.
    scoredClasses(labelled.classes, [detector.labels], wish)
    return { kind: 'map', set: labelled, wish }
  }
  if (detector === undefined) return undefined
  const sources = frames.length > 0 ? frames : demoClips()
  const { paths, from } = await takePictures({ sources, count, scratch: folder, signal })
  return { kind: 'agreement', pictures: paths, from }
}
