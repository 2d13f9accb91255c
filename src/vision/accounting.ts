/** Why a frame got no result while its camera was healthy. */
export const shedCauses = ['inference_failed', 'stopping'] as const
export type ShedCause = (typeof shedCauses)[number]

/**
 * How a received frame ended. Every frame ends in exactly one of these.
 * `lost` is counted by the control process for frames that were in an engine that died.
 */
export type FrameOutcome = 'inferred' | 'reused' | 'superseded' | 'suspect' | 'lost' | `shed:${ShedCause}`

/** Frames of one camera by fate. `received = inferred + reused + superseded + suspect + shed + lost + inFlight`. */
export type FrameCounts = {
  received: number
  inferred: number
  /** The scene had not changed since an analysed frame, whose result was used again. */
  reused: number
  superseded: number
  suspect: number
  lost: number
  shed: Record<ShedCause, number>
}

export function emptyFrameCounts(): FrameCounts {
  return {
    received: 0,
    inferred: 0,
    reused: 0,
    superseded: 0,
    suspect: 0,
    lost: 0,
    shed: { inference_failed: 0, stopping: 0 },
  }
}

/** Frames that have ended, by any fate. */
export function endedFrames(counts: FrameCounts): number {
  const shed = Object.values(counts.shed).reduce((sum, n) => sum + n, 0)
  return counts.inferred + counts.reused + counts.superseded + counts.suspect + counts.lost + shed
}

/** Adds one ending to the counts. */
export function countOutcome(counts: FrameCounts, outcome: FrameOutcome): void {
  switch (outcome) {
    case 'inferred':
    case 'reused':
    case 'superseded':
    case 'suspect':
    case 'lost':
      counts[outcome] += 1
      return
    default:
      counts.shed[outcome.slice('shed:'.length) as ShedCause] += 1
  }
}
