let copied = 0

/** Tells that tensor bytes were copied on their way between socket and model: by the protocol, or for a run. */
export function countCopy(bytes: number): void {
  copied += bytes
}

/** Tensor bytes copied by this process since it started. */
export function copiedBytes(): number {
  return copied
}
