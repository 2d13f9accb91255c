import { inTurns, type Pieces } from '../lifecycle/in-turns.js'

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
