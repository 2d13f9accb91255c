export type SendDecision =
  Readonly<{ kind: 'idle' }> | Readonly<{ kind: 'wait'; forMs: number }> | Readonly<{ kind: 'send' }>

/** Whether the waiting records go now: when they fill a batch, when the oldest has lingered enough, or at the end. */
export function decideSend(
  waiting: Readonly<{ count: number; oldestMs: number; draining: boolean }>,
  limits: Readonly<{ maxBatchRecords: number; lingerMs: number }>,
): SendDecision {
  if (waiting.count === 0) return { kind: 'idle' }
  if (waiting.draining || waiting.count >= limits.maxBatchRecords) return { kind: 'send' }
  const leftMs = limits.lingerMs - waiting.oldestMs
  return leftMs > 0 ? { kind: 'wait', forMs: leftMs } : { kind: 'send' }
}
