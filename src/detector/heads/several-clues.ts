import type { ModelTensor } from '../../tensors/tensor.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { CellLayout } from './cell-layout.js'
import type { HeadKind, HeadOptions } from './head.js'
import type { HeadSettings } from './head-settings.js'

/** What is known of a model whose detections stand in several outputs. */
export type SeveralClues = Readonly<{
  /** Named in errors. */
  model: string
  input: SizePx
  outputs: readonly ModelTensor[]
  /** How many classes the labels may stand for, the likeliest number first; `undefined` without labels. */
  counts: readonly number[] | undefined
  names?: readonly string[] | undefined
  /** The model parameter `gantry.head`. */
  explicit: string | undefined
  settings: HeadSettings
}>

/** A kind and what is known of it. */
export type FoundHead = Readonly<{ kind: HeadKind; outputs: readonly ModelTensor[]; reason: string }> &
  Recognised
type Recognised = Readonly<{
  classes?: number | undefined
  columns?: number
  strides?: readonly number[]
  cellLayout?: CellLayout
  options?: Partial<HeadOptions>
}>
