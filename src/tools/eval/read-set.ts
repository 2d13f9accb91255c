import type { LabelledSet } from './labelled-set.js'
import { readCocoSet } from './coco-set.js'
import { readYoloSet, type Split } from './yolo-set.js'

export type SetChoice = Readonly<{
  /** A `.json` file of COCO instances; else `data.yaml` of the YOLO family, or the folder it is in. */
  data: string
  /** Of a YOLO set. */
  split: Split
  /** Folder of the pictures of a COCO set, where it is not found beside the file. */
  images?: string
  /** Only the first so many pictures. */
  limit?: number
}>

/** @throws LabelsError `GANTRY_LABELS`, SystemLimitError */
export function readLabelledSet({ data, split, images, limit }: SetChoice): LabelledSet {
  const set = data.toLowerCase().endsWith('.json') ? readCocoSet(data, images) : readYoloSet(data, split)
  if (limit === undefined || limit >= set.pictures.length) return set
  const note = `only the first ${limit} of ${set.pictures.length} pictures`
  return { ...set, pictures: set.pictures.slice(0, limit), notes: [note, ...set.notes] }
}
