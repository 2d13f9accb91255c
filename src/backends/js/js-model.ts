/**
 * What a file `<version>/model.js` (or `model.mjs`) exports as default, to be a model of its own: `backend: "js"`.
 *
 * It runs in a worker thread, one request at a time for each instance, and may use any module that Node finds from its place. This
 * file imports nothing, so that it can be copied.
 */

export type JsDatatype =
  | 'BOOL'
  | 'UINT8'
  | 'UINT16'
  | 'UINT32'
  | 'UINT64'
  | 'INT8'
  | 'INT16'
  | 'INT32'
  | 'INT64'
  | 'FP16'
  | 'FP32'
  | 'FP64'
  | 'BF16'
  | 'BYTES'

/**
 * Elements of a tensor. FP16 and BF16 are their bits as uint16; BOOL is 0 or 1; BYTES are a list of byte strings, where an output may
 * also have text.
 */
export type JsData =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array
  | readonly (Uint8Array | string)[]

export type JsTensor = Readonly<{ shape: readonly number[]; data: JsData }>

/** An input or output; -1 is any size. With `max_batch_size > 0` shapes have the batch first. */
export type JsTensorSpec = Readonly<{
  name: string
  datatype: JsDatatype
  shape: readonly number[]
  optional?: boolean
}>

export type JsContext = Readonly<{
  name: string
  version: string
  /** Folder of this version, for files beside the model. */
  versionDir: string
  /** `parameters` of `config.pbtxt`. */
  parameters: Readonly<Record<string, string>>
  /** As `config.pbtxt` lists them. */
  inputs: readonly JsTensorSpec[]
  outputs: readonly JsTensorSpec[]
}>

export type JsRequest = Readonly<{
  /** By name; optional ones may be missing. They belong to the model. */
  inputs: Readonly<Record<string, JsTensor>>
  /** Outputs that somebody wants; others may be left out. */
  outputs: readonly string[]
  batchSize: number
}>

export interface JsModel {
  /** @returns outputs by name. What it throws becomes the error of the request. */
  execute(
    request: JsRequest,
  ): Promise<Readonly<Record<string, JsTensor>>> | Readonly<Record<string, JsTensor>>
  close?(): Promise<void> | void
}

/** The default export. Called once in each instance. */
export type CreateJsModel = (context: JsContext) => Promise<JsModel> | JsModel
