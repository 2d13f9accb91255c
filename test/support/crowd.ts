import type { Rect } from '../../src/vision/caption-places.js'

/** Places of boxes as they come: people one behind another with what they wear, from a seed. */
export function crowd(seed: number, people: number): { label: string; rect: Rect }[] {
  let state = seed
  const random = (most: number): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    return (state / 0x7fffffff) * most
  }
  return Array.from({ length: people }, () => {
    const height = 40 + random(220)
    const rect = { x: random(560), y: random(300), width: height * 0.4, height }
    const helmet = { x: rect.x + rect.width * 0.25, y: rect.y, width: rect.width / 2, height: height / 7 }
    return [
      { label: 'person', rect },
      { label: random(1) < 0.5 ? 'helmet' : 'head', rect: helmet },
      { label: 'no_vest', rect: { ...rect, y: rect.y + height * 0.2, height: height * 0.4 } },
    ]
  }).flat()
}
