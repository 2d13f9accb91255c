/** A place in the stream as clients keep it: the run of the service that counted, and how far it had counted. */
export type StreamPlace = Readonly<{ epoch: string; position: number }>

/** Of the places that are times alone, which no run counted. */
const ofNoRun = '0'
/** Positions that are times count microseconds, so that a thousand messages of a millisecond have places of their own. */
const positionsPerMs = 1_000
/** No run counts so far one by one, and no clock shows a time before it: 2001. */
const firstTimed = 1e12 * positionsPerMs

export function formatCursor({ epoch, position }: StreamPlace): string {
  return `${epoch}-${position}`
}

/** @param cursor - has the form of `cursorSchema`. */
export function parseCursor(cursor: string): StreamPlace {
  const dash = cursor.lastIndexOf('-')
  return { epoch: cursor.slice(0, dash), position: Number(cursor.slice(dash + 1)) }
}

/**
 * A place that says when, beside how far: any node of a cluster can go on there. It lies behind the one before it, and stays under 2^53.
 *
 * @param timeMs - milliseconds since the epoch.
 */
export function timedPosition(timeMs: number, behind: number): number {
  return Math.max(Math.floor(timeMs) * positionsPerMs, behind + 1)
}

/** @returns milliseconds since the epoch; undefined for a position that is no time. */
export function timeOfPosition(position: number): number | undefined {
  return position < firstTimed ? undefined : Math.floor(position / positionsPerMs)
}

/** Everything from a time on, whoever counted. */
export function cursorOfTime(timeMs: number, behind = 0): string {
  return formatCursor({ epoch: ofNoRun, position: timedPosition(timeMs, behind) })
}
