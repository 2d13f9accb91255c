/**
 * Phase of the camera at a place, a fraction of the sampling period in `[0, 1)`: 0, 1/2, 1/4, 3/4, 1/8 ... (van der Corput's sequence).
 *
 * However many cameras there are, they are spread over the period, and none moves when another comes.
 *
 * @param place - integer from 0.
 */
export function phaseOf(place: number): number {
  let phase = 0
  for (let rest = place, part = 0.5; rest > 0; rest = Math.floor(rest / 2), part /= 2)
    phase += (rest % 2) * part
  return phase
}

/** Lowest place that nobody has. */
export function firstFree(taken: readonly number[]): number {
  const places = new Set(taken)
  let place = 0
  while (places.has(place)) place += 1
  return place
}
