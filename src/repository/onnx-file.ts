import { closeSync, fstatSync, openSync } from 'node:fs'
import protobuf from 'protobufjs'
import { isSystemLimit, byTrueName } from '../lifecycle/system-limit.js'
import { ModelInvalidError } from './errors.js'
import { FileCursor, readField, readVarint, skipField } from './file-cursor.js'
import { onnxProto } from './onnx-schema.js'
import type { ModelTensor } from '../tensors/tensor.js'
import { onnxTypeOf } from '../tensors/element-type.js'

/** What an ONNX file says about itself. */
export type OnnxInfo = Readonly<{
  irVersion: number
  producer: string
  opsets: Readonly<Record<string, number>>
  /** Without the weights that old exporters list as inputs. */
  inputs: readonly ModelTensor[]
  outputs: readonly ModelTensor[]
  metadata: Readonly<Record<string, string>>
  fileBytes: number
}>

type Draft = {
  irVersion: number
  producer: string
  opsets: Record<string, number>
  inputs: ModelTensor[]
  outputs: ModelTensor[]
  metadata: Record<string, string>
  weights: Set<string>
  hasGraph: boolean
}

type ValueInfo = {
  name: string
  type?: {
    tensor_type?: {
      elem_type: number
      shape?: { dim: readonly { dim_value?: number; dim_param?: string }[] }
    }
  }
}

const root = protobuf.parse(onnxProto, { keepCase: true }).root
const valueInfoType = root.lookupType('onnx.ValueInfoProto')
const opsetType = root.lookupType('onnx.OperatorSetIdProto')
const entryType = root.lookupType('onnx.StringStringEntryProto')

/** A model description is never larger; a longer field is damage. */
const maxDescriptionBytes = 16 * 1024 * 1024

/**
 * Reads inputs, outputs and metadata of an ONNX file, skipping nodes and weights, so that the size of the model costs nothing.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID` if the file is not there or is no ONNX model;
 *   SystemLimitError if a limit of the system keeps it from being read.
 */
export function readOnnxFile(path: string): OnnxInfo {
  return readOnnx(path, readInfo)
}

/**
 * Reads an ONNX file by a cursor at its start.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID` if the file cannot be read, or `read` throws.
 */
export function readOnnx<T>(path: string, read: (cursor: FileCursor) => T): T {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    if (isSystemLimit(error)) throw byTrueName(`cannot read ${path}`, error)
    throw new ModelInvalidError(
      `cannot read ${path}: ${text(error)}`,
      'Check the path and its permissions.',
      error,
    )
  }
  try {
    return read(new FileCursor(fd, fstatSync(fd).size))
  } catch (error) {
    if (isSystemLimit(error)) throw byTrueName(`cannot read ${path}`, error)
    throw new ModelInvalidError(
      `${path} is not a readable ONNX model: ${text(error)}`,
      'Export the model again, or copy the file again: it may be cut short.',
      error,
    )
  } finally {
    closeSync(fd)
  }
}

function readInfo(cursor: FileCursor): OnnxInfo {
  const draft: Draft = {
    irVersion: 0,
    producer: '',
    opsets: {},
    inputs: [],
    outputs: [],
    metadata: {},
    weights: new Set(),
    hasGraph: false,
  }
  readModel(cursor, draft)
  if (!draft.hasGraph) throw new Error('it has no graph')
  const { weights, hasGraph: _, inputs, ...rest } = draft
  return { ...rest, inputs: inputs.filter((input) => !weights.has(input.name)), fileBytes: cursor.fileBytes }
}

/** Fields of `ModelProto`. */
function readModel(cursor: FileCursor, draft: Draft): void {
  while (!cursor.atEnd) {
    const field = readField(cursor)
    if (field.number === 1 && field.length < 0) draft.irVersion = readVarint(cursor)
    else if (field.number === 2 && field.wireType === 2)
      draft.producer = description(cursor, field.length).toString()
    else if (field.number === 7 && field.wireType === 2) {
      draft.hasGraph = true
      cursor.within(field.length, () => readGraph(cursor, draft))
    } else if (field.number === 8 && field.wireType === 2) {
      const opset = decode<{ domain: string; version: number }>(opsetType, cursor, field.length)
      draft.opsets[opset.domain] = opset.version
    } else if (field.number === 14 && field.wireType === 2) {
      const entry = decode<{ key: string; value: string }>(entryType, cursor, field.length)
      draft.metadata[entry.key] = entry.value
    } else skipField(cursor, field)
  }
}

/** Fields of `GraphProto`. */
function readGraph(cursor: FileCursor, draft: Draft): void {
  while (!cursor.atEnd) {
    const field = readField(cursor)
    if (field.wireType !== 2) skipField(cursor, field)
    else if (field.number === 5) draft.weights.add(cursor.within(field.length, () => tensorName(cursor)))
    else if (field.number === 11) draft.inputs.push(modelTensor(decode(valueInfoType, cursor, field.length)))
    else if (field.number === 12) draft.outputs.push(modelTensor(decode(valueInfoType, cursor, field.length)))
    else skipField(cursor, field)
  }
}

/** Name of a `TensorProto`, whose data is skipped. */
function tensorName(cursor: FileCursor): string {
  let name = ''
  while (!cursor.atEnd) {
    const field = readField(cursor)
    if (field.number === 8 && field.wireType === 2) name = description(cursor, field.length).toString()
    else skipField(cursor, field)
  }
  return name
}

/** Bytes of a field that describes. @throws RangeError where it is too long to do so */
export function description(cursor: FileCursor, length: number): Buffer {
  if (length > maxDescriptionBytes) throw new RangeError(`a description of ${length} bytes`)
  return cursor.bytes(length)
}

function decode<T>(type: protobuf.Type, cursor: FileCursor, length: number): T {
  const message = type.decode(description(cursor, length))
  return type.toObject(message, { longs: Number, defaults: true, arrays: true, oneofs: false }) as T
}

function modelTensor(value: ValueInfo): ModelTensor {
  const tensor = value.type?.tensor_type
  const dims = tensor?.shape?.dim ?? []
  return {
    name: value.name,
    type: onnxTypeOf(tensor?.elem_type ?? 0),
    shape: dims.map((dim) => {
      if (dim.dim_param !== undefined && dim.dim_param !== '') return dim.dim_param
      return dim.dim_value === undefined || dim.dim_value < 0 ? '?' : dim.dim_value
    }),
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
