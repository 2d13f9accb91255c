import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OnnxModel } from '../../repository/onnx-model.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { emptyModelConfig } from '../../repository/model-config.js'
import { readGraphParts } from '../split/graph-parts.js'
import { measureGraph } from '../split/measure-graph.js'
import { nodeWork } from '../split/node-work.js'
import { peakKinds, type PeakKind, peakModel, peakOperations } from './peak-models.js'
import type { TrialResult } from './trial.js'
import type { TrialTask } from './trial-task.js'

/** What the processor can do at most, and what an inference needs. */
export type Roofline = Readonly<{
  /** Operations of an inference, each multiplication and each addition counted as one; estimated from the graph. Undefined where it cannot be read. */
  operations: number | undefined
  /** Operations per second of all cores, by large products of matrices in ONNX Runtime; `null` where that did not run. */
  peaks: Readonly<Record<PeakKind, number | null>>
}>

/** How a trial is run; rejects after a signal. */
type Run = (task: TrialTask) => Promise<TrialResult>

/**
 * Measures the roof under which every configuration on the CPU lies.
 *
 * @param folder - for the models that are measured.
 */
export async function measureRoofline(
  model: OnnxModel,
  folder: string,
  cores: number,
  run: Run,
): Promise<Roofline> {
  const peaks: Record<PeakKind, number | null> = { float32: null, int8: null }
  for (const kind of peakKinds) peaks[kind] = await peakOf(kind, folder, cores, run)
  return { operations: await operationsOf(model), peaks }
}

async function peakOf(kind: PeakKind, folder: string, cores: number, run: Run): Promise<number | null> {
  const name = `peak-${kind}`
  const versionDir = join(folder, name, '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), peakModel(kind))
  const result = await run({
    name,
    versionDir,
    config: {
      ...emptyModelConfig,
      name,
      backend: 'onnxruntime',
      parameters: {
        intra_op_thread_count: { string_value: String(cores) },
        'session.intra_op.allow_spinning': { string_value: '1' },
      },
    },
    provider: 'cpu',
    load: { kind: 'concurrency', levels: [1] },
    inputData: 'random',
    shapes: {},
    seed: 1,
    windowMs: 500,
    mostWindows: 5,
  })
  const perSecond = result.ok ? result.levels[0]?.inferencesPerSecond : undefined
  return perSecond === undefined ? null : perSecond * peakOperations
}

/** Undefined for a graph that cannot be run by itself, such as one whose weights lie elsewhere. */
async function operationsOf(model: OnnxModel): Promise<number | undefined> {
  try {
    const { path } = model
    const parts = readGraphParts(path)
    const tensors = await measureGraph(path, parts, sizedInputs(model))
    // What only moves or maps elements is no arithmetic of a product.
    const products = parts.nodes.filter(({ op }) => /Conv|MatMul|Gemm/.test(op))
    const all = products.reduce((sum, node) => sum + 2 * nodeWork(node, tensors, parts.weights), 0)
    return all > 0 ? all : undefined
  } catch {
    return undefined
  }
}

/** Sizes that the file leaves open as the configuration has them. */
function sizedInputs({ onnx, config }: OnnxModel): readonly ModelTensor[] {
  return onnx.inputs.map((tensor) => {
    const dims = config.input.find(({ name }) => name === tensor.name)?.dims ?? []
    // The batch is no dimension of the configuration where there is one.
    const from = tensor.shape.length - dims.length
    const shape = tensor.shape.map((size, axis) => {
      const configured = dims[axis - from] ?? -1
      return typeof size === 'string' && configured > 0 ? configured : size
    })
    return { ...tensor, shape }
  })
}
