import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { inputShape } from '../../detector/input-tensor.js'
import { dataOf } from '../../tensors/tensor.js'
import { type PythonRefusal, runJob } from '../python/run-job.js'
import { feed, pictureAt, type Pictures } from './frames.js'
import { type DraftPlan, pictureOf } from './model-draft.js'
import { ModelTransformError } from './transform-error.js'

export const calibrationMethods = ['minmax', 'percentile', 'entropy'] as const

/** How a model is quantised. */
export type QuantiseSettings = Readonly<{
  /** How ranges of activations are found. */
  method: (typeof calibrationMethods)[number]
  /** Of `percentile`: which part of the values is inside, in percent. */
  percentile: number
  perChannel: boolean
  /** 7, or 8, whose sums saturate on x64 without VNNI. */
  weightBits: 7 | 8
  /** Names of nodes that stay float32. */
  exclude: readonly string[]
  /**
   * A layer that alone moves what the network ends in by more than this part of it, as a root mean square, stays float32; 0: it is not
   * measured.
   */
  sensitivity: number
}>

export const defaultQuantiseSettings: QuantiseSettings = {
  method: 'minmax',
  percentile: 99.99,
  perChannel: true,
  weightBits: 7,
  exclude: [],
  sensitivity: 0.1,
}

/** Python with the libraries, and where its files may be. */
export type Libraries = Readonly<{
  python: string
  env: NodeJS.ProcessEnv
  scratch: string
  say: (line: string) => void
  signal?: AbortSignal | undefined
}>

/** What the ONNX checker said of a model: `passed`, or what it complains of. */
export type Checked = Readonly<{ checker: string }>

export type QuantiseReport = Checked &
  Readonly<{
    layers: number
    /** That stay float32: the last ones, and those left out. */
    float32Layers: readonly string[]
    /** Left out by name, or as they are sensitive. */
    excluded: readonly string[]
    /** Convolutions that read the bytes of the picture by cells. */
    readByCells: number
    /** The most sensitive layers. */
    sensitivity: readonly Readonly<{ layer: string; error: number }>[]
    pictures: number
  }>

/**
 * Static int8 by onnxruntime.quantization.
 *
 * @throws ModelTransformError, PythonError, AbortError
 */
export async function quantise(
  source: string,
  target: string,
  plan: DraftPlan,
  pictures: Pictures,
  settings: QuantiseSettings,
  libraries: Libraries,
): Promise<QuantiseReport> {
  const { plan: input, tensor } = pictureOf(plan, 'int8')
  if (typeof tensor.shape[0] === 'number' && tensor.shape[0] !== 1)
    throw new ModelTransformError(
      `int8 calibrates with one picture at a time, and input "${tensor.name}" takes ${tensor.shape[0]}`,
      'Name batch=free before int8.',
    )
  const file = join(libraries.scratch, 'calibration.bin')
  const fd = openSync(file, 'w')
  try {
    for (const [at, path] of pictures.paths.entries()) {
      libraries.signal?.throwIfAborted()
      if (at % 50 === 0) libraries.say(`picture ${at + 1} of ${pictures.paths.length}`)
      writeSync(fd, dataOf((await feed(input, await pictureAt(path))).values))
    }
  } finally {
    closeSync(fd)
  }
  const { method, percentile, perChannel, weightBits, exclude, sensitivity } = settings
  return run<QuantiseReport>(libraries, {
    step: 'int8',
    source,
    target,
    pictures: file,
    input: input.name,
    elementType: tensor.type,
    shape: inputShape(input, 1),
    settings: { method, percentile, per_channel: perChannel, weight_bits: weightBits, exclude, sensitivity },
  })
}

/** By ONNX Runtime's converter; inputs, outputs and what follows the last layers with weights stay float32. @throws ModelTransformError */
export async function toFloat16(
  source: string,
  target: string,
  libraries: Libraries,
): Promise<Checked & Readonly<{ float32Nodes: number }>> {
  return run(libraries, { step: 'float16', source, target })
}

/** By onnxslim. @throws ModelTransformError */
export async function simplify(
  source: string,
  target: string,
  libraries: Libraries,
): Promise<Checked & Readonly<{ nodesBefore: number; nodes: number }>> {
  return run(libraries, { step: 'simplify', source, target })
}

/** What the ONNX checker says of a model. */
export async function checkOnnx(source: string, libraries: Libraries): Promise<Checked> {
  return run(libraries, { step: 'check', source })
}

async function run<T extends object>(libraries: Libraries, job: object): Promise<T> {
  const { python, scratch } = libraries
  const answer = await runJob<T>(python, 'gantry_transform', job, join(scratch, 'job.json'), libraries)
  if (isRefusal(answer)) throw new ModelTransformError(answer.refused, answer.hint)
  return answer
}

function isRefusal(answer: object): answer is PythonRefusal {
  return 'refused' in answer
}
