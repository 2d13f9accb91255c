import { countCopy } from './copied-bytes.js'
import { elementBytes } from './datatype.js'
import type { Tensor } from './tensor.js'

/** Moving a buffer to another thread costs more than copying this many bytes. */
export const leastMovedBytes = 32 * 1024

/** Most bytes of a frame that a transport leaves before a body in its buffer. */
const mostFrameBytes = 8

/**
 * The tensors of a request, the large one of them marked as movable where the body belongs to the request alone.
 *
 * A buffer moves once, and to one thread. So a single tensor keeps the body; small ones beside it get copies. Where several are
 * large, or the large one is not aligned for its type, none is marked.
 *
 * @param tensors - some or all of them views of `body`.
 * @param body - nobody else reads it after this.
 */
export function movableTensors(tensors: readonly Tensor[], body: Uint8Array): readonly Tensor[] {
  const marked = ofBody(tensors, body)
  return marked.some(isWholeBuffer)
    ? marked.map((tensor) => (isWholeBuffer(tensor) ? { ...tensor, movable: true } : tensor))
    : marked
}

/** Made for the tensor alone: large ones have a buffer that nothing else is in. */
function isWholeBuffer({ data, movable }: Tensor): boolean {
  return movable !== true && data.byteLength >= leastMovedBytes && data.byteLength === data.buffer.byteLength
}

function ofBody(tensors: readonly Tensor[], body: Uint8Array): readonly Tensor[] {
  if (body.byteLength < leastMovedBytes || !fillsItsBuffer(body)) return tensors
  const views = tensors.filter(({ data }) => data.buffer === body.buffer)
  const large = views.filter(({ data }) => data.byteLength >= leastMovedBytes)
  const [mover] = large
  if (mover === undefined || large.length > 1 || !isAligned(mover)) return tensors
  return tensors.map((tensor) => {
    if (tensor === mover) return { ...tensor, movable: true }
    return views.includes(tensor) ? { ...tensor, data: copyOf(tensor.data) } : tensor
  })
}

/** Whether nothing else can be in the buffer: neither Node's pool nor what else came from the socket. */
function fillsItsBuffer({ buffer, byteOffset, byteLength }: Uint8Array): boolean {
  return byteOffset <= mostFrameBytes && byteOffset + byteLength === buffer.byteLength
}

function isAligned({ datatype, data }: Tensor): boolean {
  return data.byteOffset % Math.max(1, elementBytes(datatype)) === 0
}

function copyOf(data: Uint8Array): Uint8Array {
  countCopy(data.byteLength)
  return new Uint8Array(data)
}
