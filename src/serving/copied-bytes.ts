let copied = 0

/** Tells that tensor bytes were copied on their way between socket and backend. */
export function countCopy(bytes: number): void {
  copied += bytes
}

/** Tensor bytes copied by this process since it started. */
export function copiedBytes(): number {
  return copied
}
