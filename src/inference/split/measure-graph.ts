import ort from 'onnxruntime-node'
import { rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { elementCount, type ModelTensor, type TensorType } from '../tensor-type.js'
import type { GraphParts } from './graph-parts.js'
import { randomInputs } from './random-inputs.js'
import { valueInfo, writeGraph } from './write-graph.js'

/** A tensor as it was seen in a run with batch size 1. */
export type MeasuredTensor = Readonly<{
  type: TensorType
  shape: readonly (number | string)[]
  elements: number
  bytes: number
  /** The first size, and no other, follows the batch size. */
  batched: boolean
}>

const elementBytes: Readonly<Record<string, number>> = {
  float32: 4,
  float64: 8,
  float16: 2,
  bfloat16: 2,
  int64: 8,
  uint64: 8,
  int32: 4,
  uint32: 4,
  int16: 2,
  uint16: 2,
  int8: 1,
  uint8: 1,
  bool: 1,
}

/**
 * Shapes and types of everything that the nodes of a model give, from runs with random inputs: files seldom tell them.
 *
 * Writes a file beside the model for as long as it takes, where its weights are found.
 */
export async function measureGraph(
  path: string,
  parts: GraphParts,
  inputs: readonly ModelTensor[],
): Promise<ReadonlyMap<string, MeasuredTensor>> {
  const names = parts.nodes.flatMap((node) => node.outputs)
  const probe = join(dirname(path), `.${basename(path)}.split-${process.pid}.onnx`)
  const outputs = names.map((name) => parts.outputs.get(name) ?? valueInfo(name))
  writeFileSync(probe, writeGraph(parts, parts.nodes, [...parts.inputs.values()], outputs))
  try {
    const session = await ort.InferenceSession.create(probe, {
      graphOptimizationLevel: 'disabled',
      logSeverityLevel: 3,
    })
    try {
      const one = await shapesOf(session, inputs, 1)
      const freeBatch = inputs.every((input) => typeof input.shape[0] === 'string')
      const two = freeBatch ? await shapesOf(session, inputs, 2) : one
      return new Map([...one].map(([name, seen]) => [name, measured(seen, two.get(name) ?? seen, freeBatch)]))
    } finally {
      await session.release()
    }
  } finally {
    rmSync(probe, { force: true })
  }
}

type Seen = Readonly<{ type: TensorType; dims: readonly number[] }>

async function shapesOf(
  session: ort.InferenceSession,
  inputs: readonly ModelTensor[],
  batchSize: number,
): Promise<ReadonlyMap<string, Seen>> {
  const outputs = await session.run(randomInputs(inputs, batchSize, 1))
  return new Map(
    Object.entries(outputs).map(([name, { type, dims }]) => [name, { type: type as TensorType, dims }]),
  )
}

function measured(one: Seen, two: Seen, freeBatch: boolean): MeasuredTensor {
  const changed = one.dims.map((size, axis) => two.dims[axis] !== size)
  const elements = elementCount(one.dims)
  return {
    type: one.type,
    shape: one.dims.map((size, axis) =>
      changed[axis] === true ? (axis === 0 ? 'batch' : `free_${axis}`) : size,
    ),
    elements,
    bytes: elements * (elementBytes[one.type] ?? 8),
    batched: freeBatch && changed[0] === true && !changed.slice(1).includes(true),
  }
}
