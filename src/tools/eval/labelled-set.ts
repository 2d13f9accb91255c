import type { SizePx } from '../../vision/letterbox.js'
import type { Truth } from './coco-match.js'

/** A thing that somebody has drawn a box around. */
export type LabelledBox = Truth &
  Readonly<{
    /** Place of its class in the list of the set. */
    class: number
  }>

export type LabelledPicture = Readonly<{
  /** As its set calls it, for people. */
  name: string
  path: string
  /** Where the labels say it; else they are relative to whatever size it has. */
  size: SizePx | undefined
  /** @param size - of the picture as it is decoded, its EXIF orientation followed. */
  boxes(size: SizePx): readonly LabelledBox[]
}>

/** Pictures with all things of some classes labelled. */
export type LabelledSet = Readonly<{
  /** Where it is, for people. */
  name: string
  format: 'yolo' | 'coco'
  /** Names of the classes, in the order of their numbers. */
  classes: readonly string[]
  /** In a fixed order, at least one. */
  pictures: readonly LabelledPicture[]
  /** What the reader should know, a sentence each. */
  notes: readonly string[]
}>
