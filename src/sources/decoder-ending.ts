import type { DecodedLocation } from './decoder-input.js'
import type { ProcessEnd } from './decoder-process.js'
import { causesIn, nothingToShow, whyEnded, type Failure } from './failure-reason.js'
import type { SessionEnd } from './session.js'

/** What is known of a run that has ended, beside what its decoder said. */
export type EndedRun = Readonly<{
  kind: DecodedLocation['kind']
  /** It was asked to end, or what it reads from has. */
  wasCut: boolean
  gavePicture: boolean
  /** The decoder met damage. */
  isDamaged: boolean
  /** Why the video that is wanted is not there. */
  lacking: string | undefined
  /** What the gate that it read through has seen. */
  problem: Failure | undefined
}>

/** A file that is still being written, or was cut off, ends where it does. */
const endsEarly = /File ended prematurely|partial file$/

/** A file that is to be played again and again has come to its end, and has no index to begin by: raw streams, pipes. */
export function cannotBeWoundBack({ tail }: ProcessEnd): boolean {
  return tail.some((line) => /Seek to start failed|^\[in#0.* error code: -1 \(/.test(line))
}

/** Damage up to the very end does not keep material from having come to its end; an end without any picture is a failure. */
export function endingOf(end: ProcessEnd, run: EndedRun): SessionEnd {
  if (!run.wasCut && isAtItsEnd(end, run)) {
    if (run.gavePicture || run.kind !== 'file') return { kind: 'finished' }
    const reason = run.isDamaged ? 'no picture of the file can be decoded' : 'there is no picture in the file'
    return { kind: 'failed', ...nothingToShow(reason) }
  }
  const failure = whyEnded(end, run.problem, run.kind === 'file')
  const isLacking = run.lacking !== undefined && failure.systemHint === undefined
  return { kind: 'failed', ...(isLacking ? nothingToShow(run.lacking ?? '') : failure) }
}

/** Of a camera the exit code says nothing: one that froze ends with 0. */
function isAtItsEnd(end: ProcessEnd, { kind, gavePicture }: EndedRun): boolean {
  if (kind === 'rtsp' || end.unstarted !== undefined) return false
  if (kind === 'file' && cannotBeWoundBack(end)) return gavePicture
  const causes = causesIn(end.tail).filter((line) => !(kind === 'file' && endsEarly.test(line)))
  return causes.length === 0 && (kind === 'http' || end.exitCode === 0)
}
