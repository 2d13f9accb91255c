import type { Execution } from '../runtime/backend.js'
import type { Tensor } from '../tensors/tensor.js'
import { copyAllInTurns, leastMovedBytes } from '../tensors/tensor-buffers.js'

/** An input of a whole batch, as it travels to the thread of a model. */
export type PackedInput = Readonly<{
  name: string
  /** Of all parts together. */
  shape: readonly number[]
  /** One of each request, or one for all; their buffers are transferred. */
  parts: readonly Uint8Array[]
}>

export type PackedInputs = Readonly<{
  inputs: readonly PackedInput[]
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
export async function packInputs(batch: readonly Execution[], batched: boolean): Promise<PackedInputs> {
  const columns = [...(batch[0]?.inputs.keys() ?? [])].map((name) => {
    const tensors = batch.map((execution) => execution.inputs.get(name)!)
    return { name, tensors, moved: tensors.every(isWorthMoving) }
  })
  const copied = columns.filter((column) => !column.moved)
  const arena = new ArrayBuffer(copied.reduce((sum, { tensors }) => sum + aligned(bytesOf(tensors)), 0))
  const transfer = new Set<ArrayBuffer>(arena.byteLength > 0 ? [arena] : [])
  let at = 0
  const inputs: PackedInput[] = []
  for (const { name, tensors, moved } of columns) {
    const shape = batchShape(tensors, batched)
    const parts = tensors.map(({ data }) => data)
    if (moved) {
      for (const { buffer } of parts) transfer.add(buffer as ArrayBuffer)
      inputs.push({ name, shape, parts })
      continue
    }
    const part = new Uint8Array(arena, at, bytesOf(tensors))
    await copyAllInTurns(parts, part)
    at += aligned(part.byteLength)
    inputs.push({ name, shape, parts: [part] })
  }
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

function batchShape(tensors: readonly Tensor[], batched: boolean): readonly number[] {
  const shape = tensors[0]?.shape ?? []
  if (!batched || tensors.length === 1) return shape
  return [tensors.reduce((sum, tensor) => sum + (tensor.shape[0] ?? 0), 0), ...shape.slice(1)]
}
