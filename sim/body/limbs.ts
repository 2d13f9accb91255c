import { type LimbRing } from './tube.js'

/* Thickness along the limbs of an average person, metres; `at` is -1 at the root, 0 at the joint, 1 at the end. */

/** An arm's sleeve, short or long, and the skin below it. */
export function armRings(sleeveHex: number, skinHex: number, longSleeve: boolean): LimbRing[] {
  const fore = longSleeve ? sleeveHex : skinHex
  return [
    { at: -1.16, radius: 0.012, hex: sleeveHex, v: 0 },
    { at: -1.12, radius: 0.045, hex: sleeveHex, v: 0.05 },
    { at: -1, radius: 0.063, hex: sleeveHex, v: 0.12 },
    { at: -0.85, radius: 0.064, hex: sleeveHex, v: 0.2 },
    { at: -0.55, radius: 0.057, hex: sleeveHex, v: 0.35 },
    { at: -0.22, radius: 0.052, hex: sleeveHex, v: 0.5 },
    { at: -0.2, radius: longSleeve ? 0.051 : 0.042, hex: fore, v: 0.51 },
    { at: 0, radius: longSleeve ? 0.05 : 0.041, hex: fore, v: 0.6 },
    { at: 0.2, radius: longSleeve ? 0.049 : 0.043, hex: fore, v: 0.7 },
    { at: 0.5, radius: longSleeve ? 0.046 : 0.038, hex: fore, v: 0.8 },
    { at: 0.9, radius: longSleeve ? 0.04 : 0.028, hex: fore, v: 0.92 },
    { at: 1, radius: 0.026, hex: fore, v: 1 },
  ]
}

/** A trouser leg down to the boot. */
export function legRings(hex: number): LimbRing[] {
  return [
    { at: -1.12, radius: 0.05, hex, v: 0 },
    { at: -1, radius: 0.093, hex, v: 0.08 },
    { at: -0.75, radius: 0.09, hex, v: 0.2 },
    { at: -0.45, radius: 0.08, hex, v: 0.35 },
    { at: -0.2, radius: 0.071, hex, v: 0.46 },
    { at: 0, radius: 0.068, hex, v: 0.55 },
    { at: 0.2, radius: 0.067, hex, v: 0.62 },
    { at: 0.45, radius: 0.066, hex, v: 0.72 },
    { at: 0.75, radius: 0.062, hex, v: 0.85 },
    { at: 0.93, radius: 0.064, hex, v: 0.95 },
    { at: 0.95, radius: 0.03, hex, v: 1 },
  ]
}
