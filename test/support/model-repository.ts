import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx, type ElementType } from './onnx-builder.js'
import { addModel } from './onnx-models.js'

const echoTypes: readonly ElementType[] = [
  'bool',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'uint32',
  'int32',
  'uint64',
  'int64',
  'float16',
  'float32',
  'float64',
  'string',
]

/** A model that gives back its input `in0` as `out0`. */
export function echoOnnx(type: ElementType, shape: readonly (number | string)[]): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'in0', type, shape }],
    outputs: [{ name: 'out0', type, shape }],
    nodes: [{ op: 'Identity', inputs: ['in0'], outputs: ['out0'] }],
  })
}

/** Sum and difference of two vectors of 16. */
export function addSubOnnx(): Uint8Array {
  const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 16] }) as const
  return buildOnnx({
    inputs: [tensor('INPUT0'), tensor('INPUT1')],
    outputs: [tensor('OUTPUT0'), tensor('OUTPUT1')],
    nodes: [
      { op: 'Add', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT0'] },
      { op: 'Sub', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT1'] },
    ],
  })
}

const addSubConfig = `
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [
  { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] label_filename: "labels.txt" },
  { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
`

/**
 * A repository for clients: `add_sub` with labels, `echo_<type>` for every type, `echo_picture`, `spare` to unload,
 * and beside it `upload.onnx`, a model that is in no repository.
 */
export function clientRepository(): Readonly<{
  dir: string
  models: string
  upload: string
  /** Folder for traces; not there yet. */
  traces: string
}> {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-client-models-'))
  const models = join(dir, 'models')
  mkdirSync(models)
  const labels = Array.from({ length: 16 }, (_, index) => `label${index}`).join('\n')
  addModel(models, 'add_sub', { onnx: addSubOnnx(), config: addSubConfig, labels })
  for (const type of echoTypes) addModel(models, `echo_${type}`, { onnx: echoOnnx(type, ['batch', 3]) })
  addModel(models, 'echo_picture', { onnx: echoOnnx('uint8', ['batch', 640, 640, 3]) })
  addModel(models, 'spare', { onnx: echoOnnx('float32', ['batch', 3]) })
  const upload = join(dir, 'upload.onnx')
  writeFileSync(upload, echoOnnx('float32', [1, 3]))
  return { dir, models, upload, traces: join(dir, 'traces') }
}
