/** An engine, as cameras are spread over them. */
export type EnginePlace = Readonly<{
  /** Takes cameras. */
  isOpen: boolean
  /** What a frame takes of an instance there, in milliseconds; undefined: not measured yet. */
  msPerFrame: number | undefined
  /** Frames that it runs side by side. */
  instances: number
}>

/** A camera and where it is. */
export type Placed = Readonly<{
  /** Index of its engine. */
  engine: number
  /** Frames that it asks for in a second. */
  framesPerSecond: number
}>

/** Another place must be that much less busy with the camera than its own is now: a move costs frames. */
const worthwhile = 0.8

/** Engine for a camera that comes: the one that would be the least busy; of equals the one with the fewest cameras, then the first. */
export function placeFor(
  framesPerSecond: number,
  places: readonly EnginePlace[],
  cameras: readonly Placed[],
): number {
  const costs = costsOf(places)
  const counts = countsOf(places, cameras)
  const loads = loadsOf(costs, cameras)
  const anyOpen = places.some(({ isOpen }) => isOpen)
  let best = 0
  let least = Infinity
  for (const [engine, { isOpen }] of places.entries()) {
    if (anyOpen && !isOpen) continue
    const load = loads[engine]! + framesPerSecond * costs[engine]!
    const isBetter = load < least || (load === least && counts[engine]! < counts[best]!)
    if (isBetter) [best, least] = [engine, load]
  }
  return best
}

/**
 * The camera that should go elsewhere next, and where: from the busiest engine to one that is at most four fifths as busy with it. Each such
 * move lowers the load of the busiest, so that they come to an end.
 *
 * @param mayMove - whether a camera may be chosen.
 */
export function nextMove<Camera extends Placed>(
  places: readonly EnginePlace[],
  cameras: readonly Camera[],
  mayMove: (camera: Camera) => boolean = () => true,
): Readonly<{ camera: Camera; to: number }> | undefined {
  const costs = costsOf(places)
  const loads = loadsOf(costs, cameras)
  const most = Math.max(...loads)
  let move: Readonly<{ camera: Camera; to: number }> | undefined
  let least = Infinity
  for (const camera of cameras) {
    const from = camera.engine
    if (camera.framesPerSecond <= 0 || loads[from] !== most || !mayMove(camera)) continue
    for (const [to, { isOpen }] of places.entries()) {
      if (to === from || !isOpen) continue
      const there = loads[to]! + camera.framesPerSecond * costs[to]!
      const busier = Math.max(there, loads[from] - camera.framesPerSecond * costs[from]!)
      // Loads that are next to nothing have no four fifths that differ from them.
      const isWorthwhile = there <= worthwhile * loads[from] && there < loads[from]
      if (!isWorthwhile || busier >= least) continue
      move = { camera, to }
      least = busier
    }
  }
  return move
}

/** Share of a second that a frame takes of all instances; an engine that is not measured is taken to be as quick as the others are. */
function costsOf(places: readonly EnginePlace[]): number[] {
  const measured = places.map(({ msPerFrame }) => msPerFrame).filter((ms) => ms !== undefined)
  const usualMs = measured.length === 0 ? 1 : measured.reduce((sum, ms) => sum + ms, 0) / measured.length
  return places.map(({ msPerFrame, instances }) => (msPerFrame ?? usualMs) / 1_000 / Math.max(1, instances))
}

/** Share of the time that each engine is busy; over 1: frames are left out. */
function loadsOf(costs: readonly number[], cameras: readonly Placed[]): number[] {
  const loads = costs.map(() => 0)
  for (const { engine, framesPerSecond } of cameras)
    loads[engine] = (loads[engine] ?? 0) + framesPerSecond * (costs[engine] ?? 0)
  return loads
}

function countsOf(places: readonly EnginePlace[], cameras: readonly Placed[]): number[] {
  const counts = places.map(() => 0)
  for (const { engine } of cameras) counts[engine] = (counts[engine] ?? 0) + 1
  return counts
}
