import { writeSync } from 'node:fs'
import ort from '../../../backends/onnxruntime/onnxruntime.js'
import { ortTensor } from '../../../backends/onnxruntime/ort-tensor.js'
import { elementCount } from '../../../tensors/tensor-type.js'
import { begun, type ProbeAnswer, type ProbeTask } from './probe-protocol.js'

/** Entry of the probe: loads a model and runs it once on zeros, in a process that may die of it. */
const task = JSON.parse(process.argv[2] ?? '') as ProbeTask

function answer(given: ProbeAnswer): never {
  writeSync(1, `${JSON.stringify(given)}\n`)
  // Nothing is released: the process ends here.
  process.exit(0)
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const arrays: Readonly<Record<string, (length: number) => ort.Tensor.DataType>> = {
  float32: (length) => new Float32Array(length),
  float64: (length) => new Float64Array(length),
  float16: (length) => new Uint16Array(length),
  uint8: (length) => new Uint8Array(length),
  int8: (length) => new Int8Array(length),
  uint16: (length) => new Uint16Array(length),
  int16: (length) => new Int16Array(length),
  uint32: (length) => new Uint32Array(length),
  int32: (length) => new Int32Array(length),
  uint64: (length) => new BigUint64Array(length),
  int64: (length) => new BigInt64Array(length),
  bool: (length) => new Uint8Array(length),
  string: (length) => new Array<string>(length).fill(''),
}

function zeros(metadata: ort.InferenceSession.ValueMetadata): ort.Tensor {
  if (!metadata.isTensor) throw new Error(`input ${metadata.name} is no tensor`)
  const shape =
    task.shapes[metadata.name] ??
    metadata.shape.map((size) => (typeof size === 'number' && size > 0 ? size : 1))
  const make = arrays[metadata.type]
  if (make === undefined) throw new Error(`input ${metadata.name} has type ${metadata.type}`)
  return ortTensor(metadata.type, make(elementCount(shape)), shape)
}

async function runOnce(session: ort.InferenceSession): Promise<string | undefined> {
  try {
    await session.run(Object.fromEntries(session.inputMetadata.map((input) => [input.name, zeros(input)])))
    return undefined
  } catch (error) {
    return textOf(error)
  }
}

writeSync(1, `${begun}\n`)
try {
  const session = await ort.InferenceSession.create(task.modelPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  })
  answer({ loaded: true, runError: await runOnce(session) })
} catch (error) {
  answer({ loaded: false, error: textOf(error) })
}
