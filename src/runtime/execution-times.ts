/** How long a run took, apart by what it did. */
export type ExecutionTimes = Readonly<{
  computeInputNs: number
  computeInferNs: number
  computeOutputNs: number
  /** Bytes of tensors that were copied for this batch. */
  copiedBytes?: number
}>
