import { type FileCursor, readField, readVarint, skipField } from './file-cursor.js'
import { description } from './onnx-file.js'
import { type OnnxType, onnxTypeOf } from '../tensors/element-type.js'

/** Where the elements of a constant are: in the model file, or in one beside it. Without `bytes` they go to the file's end. */
export type DataPlace = Readonly<{ location?: string; offset: number; bytes?: number; packed: boolean }>

export type OnnxConstant = Readonly<{
  name: string
  type: OnnxType
  shape: readonly number[]
  /** Absent where it has no elements, or has them in a field for other types. */
  data?: DataPlace
}>

/** An absent optional input is an empty name. */
export type OnnxNode = Readonly<{
  name: string
  op: string
  inputs: readonly string[]
  outputs: readonly string[]
  /** Whole numbers among its attributes. */
  attributes: Readonly<Record<string, number>>
}>

/** What a model computes, without the elements of its constants. Subgraphs are left out. */
export type OnnxNodes = Readonly<{
  nodes: readonly OnnxNode[]
  constants: ReadonlyMap<string, OnnxConstant>
}>

type Draft = { nodes: OnnxNode[]; constants: Map<string, OnnxConstant> }
type Field = ReturnType<typeof readField>

/** Reads nodes and constants of a model. @throws RangeError where it is damaged */
export function readOnnxNodes(cursor: FileCursor): OnnxNodes {
  const draft: Draft = { nodes: [], constants: new Map() }
  eachField(cursor, (field) => {
    if (!isMessage(field, 7)) return false
    cursor.within(field.length, () => readGraph(cursor, draft))
    return true
  })
  return draft
}

function readGraph(cursor: FileCursor, draft: Draft): void {
  eachField(cursor, (field) => {
    if (isMessage(field, 1)) cursor.within(field.length, () => readNode(cursor, draft))
    else if (isMessage(field, 5)) addConstant(draft, constantIn(cursor, field.length))
    else return false
    return true
  })
}

function readNode(cursor: FileCursor, draft: Draft): void {
  const inputs: string[] = []
  const outputs: string[] = []
  const attributes: Record<string, number> = {}
  let name = ''
  let op = ''
  let value: OnnxConstant | undefined
  eachField(cursor, (field) => {
    if (isMessage(field, 1)) inputs.push(text(cursor, field))
    else if (isMessage(field, 2)) outputs.push(text(cursor, field))
    else if (isMessage(field, 3)) name = text(cursor, field)
    else if (isMessage(field, 4)) op = text(cursor, field)
    else if (isMessage(field, 5)) {
      const attribute = cursor.within(field.length, () => readAttribute(cursor))
      if (attribute.number !== undefined) attributes[attribute.name] = attribute.number
      value = attribute.tensor ?? value
    } else return false
    return true
  })
  const [output] = outputs
  if (op === 'Constant' && value !== undefined && output !== undefined)
    addConstant(draft, { ...value, name: output })
  else draft.nodes.push({ name, op, inputs, outputs, attributes })
}

function readAttribute(cursor: FileCursor): { name: string; number?: number; tensor?: OnnxConstant } {
  const attribute: ReturnType<typeof readAttribute> = { name: '' }
  eachField(cursor, (field) => {
    if (isMessage(field, 1)) attribute.name = text(cursor, field)
    else if (field.number === 3 && field.length < 0) attribute.number = readVarint(cursor)
    else if (isMessage(field, 5)) attribute.tensor = constantIn(cursor, field.length)
    else return false
    return true
  })
  return attribute
}

/** A `TensorProto`, whose elements are skipped. */
function constantIn(cursor: FileCursor, length: number): OnnxConstant {
  return cursor.within(length, () => {
    const shape: number[] = []
    const external: Record<string, string> = {}
    let name = ''
    let type: OnnxType = 'other'
    let inFile: DataPlace | undefined
    eachField(cursor, (field) => {
      if (field.number === 1 && field.length < 0) shape.push(readVarint(cursor))
      else if (isMessage(field, 1))
        cursor.within(field.length, () => {
          while (!cursor.atEnd) shape.push(readVarint(cursor))
        })
      else if (field.number === 2 && field.length < 0) type = onnxTypeOf(readVarint(cursor))
      else if (isMessage(field, 8)) name = text(cursor, field)
      else if (isMessage(field, 13)) {
        const [key, value] = cursor.within(field.length, () => readEntry(cursor))
        external[key] = value
      } else if (isMessage(field, 5) || isMessage(field, 9)) {
        inFile = { offset: cursor.position, bytes: field.length, packed: field.number === 5 }
        cursor.skip(field.length)
      } else return false
      return true
    })
    const data = external.location === undefined ? inFile : outside(external.location, external)
    return { name, type, shape, ...(data === undefined ? {} : { data }) }
  })
}

function outside(location: string, { offset, length }: Readonly<Record<string, string>>): DataPlace {
  const bytes = length === undefined ? {} : { bytes: Number(length) }
  return { location, offset: Number(offset ?? 0), ...bytes, packed: false }
}

function readEntry(cursor: FileCursor): [key: string, value: string] {
  let key = ''
  let value = ''
  eachField(cursor, (field) => {
    if (isMessage(field, 1)) key = text(cursor, field)
    else if (isMessage(field, 2)) value = text(cursor, field)
    else return false
    return true
  })
  return [key, value]
}

function addConstant({ constants }: Draft, constant: OnnxConstant): void {
  constants.set(constant.name, constant)
}

/** Gives every field to `take`, and skips those it does not take. */
function eachField(cursor: FileCursor, take: (field: Field) => boolean): void {
  while (!cursor.atEnd) {
    const field = readField(cursor)
    if (!take(field)) skipField(cursor, field)
  }
}

function isMessage(field: Field, number: number): boolean {
  return field.number === number && field.wireType === 2
}

function text(cursor: FileCursor, { length }: Field): string {
  return description(cursor, length).toString()
}
