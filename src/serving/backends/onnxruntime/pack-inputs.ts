import type { Execution } from '../../backend.js'
import { leastMovedBytes } from '../../movable-tensors.js'
import type { Tensor } from '../../tensor.js'
import type { OnnxJobInput } from './onnx-protocol.js'

export type PackedInputs = Readonly<{
  inputs: readonly OnnxJobInput[]
  /** Buffers that move to the thread of the model. */
  transfer: readonly ArrayBuffer[]
  copiedBytes: number
}>

/**
 * The inputs of a batch as they travel to the thread of the model.
 *
 * Large tensors that may be moved are moved as they are, and gathered there. All others are copied once, side by side into one
 * buffer, where those of a batch already lie together.
 *
 * @param batch - of requests with the same inputs, and the same shapes but for the batch dimension.
 */
export function packInputs(batch: readonly Execution[], batched: boolean): PackedInputs {
  const columns = [...(batch[0]?.inputs.keys() ?? [])].map((name) => {
    const tensors = batch.map((execution) => execution.inputs.get(name)!)
    return { name, tensors, moved: tensors.every(isWorthMoving) }
  })
  const copied = columns.filter((column) => !column.moved)
  const arena = new ArrayBuffer(copied.reduce((sum, { tensors }) => sum + aligned(bytesOf(tensors)), 0))
  const transfer = new Set<ArrayBuffer>(arena.byteLength > 0 ? [arena] : [])
  let at = 0
  const inputs = columns.map(({ name, tensors, moved }): OnnxJobInput => {
    const shape = batchShape(tensors, batched)
    if (moved) {
      for (const { data } of tensors) transfer.add(data.buffer as ArrayBuffer)
      return { name, shape, parts: tensors.map(({ data }) => data) }
    }
    const part = new Uint8Array(arena, at, bytesOf(tensors))
    copyInto(part, tensors)
    at += aligned(part.byteLength)
    return { name, shape, parts: [part] }
  })
  return { inputs, transfer: [...transfer], copiedBytes: at }
}

function isWorthMoving({ movable, data }: Tensor): boolean {
  return movable === true && data.byteLength >= leastMovedBytes && data.buffer instanceof ArrayBuffer
}

function bytesOf(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { data }) => sum + data.byteLength, 0)
}

function aligned(bytes: number): number {
  return (bytes + 7) & ~7
}

function copyInto(target: Uint8Array, tensors: readonly Tensor[]): void {
  let at = 0
  for (const { data } of tensors) {
    target.set(data, at)
    at += data.byteLength
  }
}

function batchShape(tensors: readonly Tensor[], batched: boolean): readonly number[] {
  const shape = tensors[0]?.shape ?? []
  if (!batched || tensors.length === 1) return shape
  return [tensors.reduce((sum, tensor) => sum + (tensor.shape[0] ?? 0), 0), ...shape.slice(1)]
}
