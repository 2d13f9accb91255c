import type { Datatype } from '../../tensors/element-type.js'
import type { JsContext } from './js-model.js'

/** What the worker of a `js` model is loaded with, told, and answers. */
export type JsLoad = Readonly<{ file: string; context: JsContext }>

export type JsTensorMessage = Readonly<{
  name: string
  datatype: Datatype
  shape: readonly number[]
  /** As the binary extension of the protocol writes it; transferred. */
  buffer: ArrayBuffer
}>

export type JsJob = Readonly<{
  inputs: readonly JsTensorMessage[]
  outputs: readonly string[]
  batchSize: number
}>

export type JsAnswer = Readonly<{ outputs: readonly JsTensorMessage[] }>
