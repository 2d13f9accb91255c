import ort from '../../backends/onnxruntime/onnxruntime.js'
import { rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { elementCount, type ModelTensor } from '../../tensors/tensor.js'
import { datatypeOfOnnx, elementBytes, type OnnxType } from '../../tensors/element-type.js'
import { valueInfo } from '../../repository/onnx-writer.js'
import type { GraphParts } from './graph-parts.js'
import { randomInputs } from './random-inputs.js'
import { writeGraph } from './write-graph.js'

/** A tensor as it was seen in a run with batch size 1. */
export type MeasuredTensor = Readonly<{
  type: OnnxType
  /** Sizes that follow those of the inputs have names. */
  shape: readonly (number | string)[]
  /** In that run. */
  dims: readonly number[]
  elements: number
  bytes: number
  /** The first size, and no other, follows the batch size. */
  batched: boolean
}>

/** Another than that of usual random inputs, and as easily divided. */
const otherFreeSize = 128

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
      const other = await otherSizes(session, inputs).catch(() => undefined)
      return new Map(
        [...one].map(([name, seen]) => {
          const size = other?.get(name) ?? seen
          return [name, measured(name, seen, two.get(name) ?? seen, size, freeBatch)]
        }),
      )
    } finally {
      await session.release()
    }
  } finally {
    rmSync(probe, { force: true })
  }
}

type Seen = Readonly<{ type: OnnxType; dims: readonly number[] }>

async function shapesOf(
  session: ort.InferenceSession,
  inputs: readonly ModelTensor[],
  batchSize: number,
  freeSize?: number,
): Promise<ReadonlyMap<string, Seen>> {
  const outputs = await session.run(randomInputs(inputs, batchSize, 1, freeSize))
  return new Map(
    Object.entries(outputs).map(([name, { type, dims }]) => [name, { type: type as OnnxType, dims }]),
  )
}

/** With larger pictures, where the model leaves their size open. Rejects where it does not run with them. */
async function otherSizes(
  session: ort.InferenceSession,
  inputs: readonly ModelTensor[],
): Promise<ReadonlyMap<string, Seen> | undefined> {
  const open = inputs.some(({ shape }) => shape.slice(1).some((size) => typeof size === 'string'))
  return open ? shapesOf(session, inputs, 1, otherFreeSize) : undefined
}

/** @param two - with batch size 2. @param other - with other open sizes. */
function measured(name: string, one: Seen, two: Seen, other: Seen, freeBatch: boolean): MeasuredTensor {
  const changed = one.dims.map((size, axis) => two.dims[axis] !== size)
  const elements = elementCount(one.dims)
  return {
    type: one.type,
    shape: one.dims.map((size, axis) =>
      changed[axis] === true && axis === 0
        ? 'batch'
        : changed[axis] === true || other.dims[axis] !== size
          ? // Equal names would say that the sizes are equal.
            `${name}_${axis}`
          : size,
    ),
    dims: one.dims,
    elements,
    bytes: elements * bytesOf(one.type),
    batched: freeBatch && changed[0] === true && !changed.slice(1).includes(true),
  }
}

/** Eight of an element whose size is not known. */
function bytesOf(type: OnnxType): number {
  const datatype = datatypeOfOnnx(type)
  return (datatype && elementBytes(datatype)) || 8
}
