import { coverageSums, type CameraTime } from '../coverage/coverage-sums.js'
import type { CoverageSpan } from '../vision/coverage.js'

type Cause = CoverageSpan['cause']

/** The time of a camera as one node has it, with its spans. */
type NodeTime = Omit<CameraTime, 'spans'> & Readonly<{ spans: readonly CoverageSpan[] }>

/**
 * The time of cameras as several nodes have it, as one. What one of them has watched was watched; else the cause of the node that had the camera
 * last counts, and `service_down` of a node that had it before only where no other says more: it may have been off while another had it.
 *
 * @param isWhole - every node has answered: time that none of them has before one took the camera over is `service_down`. Otherwise it is left
 *   out, since a node that is missing here may have watched; and so is time before the camera was added again, in which there was none.
 */
export function mergeCoverage(
  ofNodes: readonly (readonly CameraTime[])[],
  isWhole: boolean,
): readonly CameraTime[] {
  const cameras = new Map<string, CameraTime[]>()
  for (const time of ofNodes.flat()) {
    const same = cameras.get(time.cameraId)
    if (same === undefined) cameras.set(time.cameraId, [time])
    else same.push(time)
  }
  const merged = [...cameras.values()].map((times) => joined(times, isWhole))
  return merged.sort((a, b) => (a.cameraId < b.cameraId ? -1 : 1))
}

/** The same with sums alone. */
export function withoutSpans(times: readonly CameraTime[]): readonly CameraTime[] {
  return times.map((time) => ({ ...time, spans: null }))
}

function joined(times: readonly CameraTime[], isWhole: boolean): CameraTime {
  const known = times.flatMap((time) => (time.spans === null ? [] : [{ ...time, spans: time.spans }]))
  const lines = known.sort((a, b) => b.toMs - a.toMs)
  const [newest] = lines as [NodeTime, ...NodeTime[]]
  const { cameraId } = newest
  const spans = merge(pieces(lines, isWhole).map((piece) => ({ cameraId, ...piece })))
  const end = spans.at(-1)!
  // It may have begun before what was asked for.
  const sinceMs = end.fromMs === newest.spans.at(-1)?.fromMs ? newest.last.fromMs : end.fromMs
  return {
    ...{ cameraId, spans },
    fromMs: spans[0]!.fromMs,
    toMs: end.toMs,
    ...coverageSums(spans),
    last: { fromMs: sinceMs, cause: end.cause },
  }
}

type Piece = Readonly<{ fromMs: number; toMs: number; cause: Cause }>

/** @param lines - the newest first. @returns in order; what is left out is missing. */
function pieces(lines: readonly NodeTime[], isWhole: boolean): readonly Piece[] {
  const borders = [
    ...new Set(lines.flatMap(({ spans }) => spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]))),
  ]
  borders.sort((a, b) => a - b)
  const at = lines.map(() => 0)
  const found: Piece[] = []
  let hole: Piece | undefined
  borders.slice(0, -1).forEach((fromMs, index) => {
    const toMs = borders[index + 1]!
    const there = lines.flatMap((line, which) => {
      while ((line.spans[at[which]!]?.toMs ?? Infinity) <= fromMs) at[which]! += 1
      const span = line.spans[at[which]!]
      return span !== undefined && span.fromMs <= fromMs ? [span.cause] : []
    })
    if (there.length === 0) {
      hole = { fromMs, toMs, cause: 'service_down' }
      return
    }
    // A node that takes a camera over begins with that, and one to which a camera is added does not.
    if (hole !== undefined && isWhole && there.includes('service_down')) found.push(hole)
    hole = undefined
    found.push({ fromMs, toMs, cause: causeOf(there) })
  })
  return found
}

/** @param causes - of the node that had the camera last first. */
function causeOf(causes: readonly Cause[]): Cause {
  if (causes.includes(null)) return null
  return causes.find((cause) => cause !== 'service_down') ?? 'service_down'
}

function merge(spans: readonly CoverageSpan[]): CoverageSpan[] {
  const merged: CoverageSpan[] = []
  for (const span of spans) {
    const last = merged.at(-1)
    if (last?.cause === span.cause && last.toMs === span.fromMs)
      merged[merged.length - 1] = { ...last, toMs: span.toMs }
    else merged.push(span)
  }
  return merged
}
