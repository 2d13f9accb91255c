import { inTurns, type Pieces } from '../lifecycle/in-turns.js'
import { isAligned } from './elements.js'
import type { Tensor } from './tensor.js'

let copied = 0

/** Tells that tensor bytes were copied on their way between socket and model: by the protocol, or for a run. */
export function countCopy(bytes: number): void {
  copied += bytes
}

/** Tensor bytes copied by this process since it started. */
export function copiedBytes(): number {
  return copied
}

/** A piece takes a millisecond at most, with the memory that it touches first. */
const pieceBytes = 1024 ** 2
/** So much is copied at once. */
const mostAtOnce = 4 * pieceBytes

/** A copy in a buffer of its own; the loop goes on while a large one is made. */
export async function copyInTurns(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = new Uint8Array(data.byteLength)
  await copyAllInTurns([data], copy)
  return copy
}

/** Copies one behind the other into `target`; the loop goes on meanwhile where it is much. */
export async function copyAllInTurns(sources: readonly Uint8Array[], target: Uint8Array): Promise<void> {
  if (target.byteLength > mostAtOnce) return inTurns(copyPieces(sources, target))
  let at = 0
  for (const source of sources) {
    target.set(source, at)
    at += source.byteLength
  }
}

function* copyPieces(sources: readonly Uint8Array[], target: Uint8Array): Pieces<void> {
  let at = 0
  for (const source of sources)
    for (let from = 0; from < source.byteLength; from += pieceBytes) {
      const piece = source.subarray(from, from + pieceBytes)
      target.set(piece, at)
      at += piece.byteLength
      yield
    }
}

/** The data of a tensor in a buffer that may be transferred: its own where the tensor is movable, else a copy. */
export async function transferable({
  data,
  movable,
}: Tensor): Promise<Readonly<{ buffer: ArrayBuffer; copiedBytes: number }>> {
  const { buffer, byteLength } = data
  if (movable === true && buffer instanceof ArrayBuffer && byteLength === buffer.byteLength)
    return { buffer, copiedBytes: 0 }
  return { buffer: (await copyInTurns(data)).buffer, copiedBytes: byteLength }
}

/**
 * Gives the memory of buffers back at once. Left to the collector, what large requests leave behind makes it walk the whole heap every few
 * hundred of them, and their thread stands still meanwhile.
 *
 * @param buffers - nobody reads them again, and nothing else lies in them.
 */
export function giveBack(buffers: Iterable<ArrayBuffer>): void {
  for (const buffer of buffers) if (!buffer.detached) buffer.transfer(0)
}

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
  if (mover === undefined || large.length > 1 || !isAligned(mover.datatype, mover.data)) return tensors
  return tensors.map((tensor) => {
    if (tensor === mover) return { ...tensor, movable: true }
    return views.includes(tensor) ? { ...tensor, data: copyOf(tensor.data) } : tensor
  })
}

/** Whether nothing else can be in the buffer: neither Node's pool nor what else came from the socket. */
function fillsItsBuffer({ buffer, byteOffset, byteLength }: Uint8Array): boolean {
  return byteOffset <= mostFrameBytes && byteOffset + byteLength === buffer.byteLength
}

function copyOf(data: Uint8Array): Uint8Array {
  countCopy(data.byteLength)
  return new Uint8Array(data)
}
