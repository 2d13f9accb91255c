import { Random } from '../world/random.js'
import { type Tile, tileOrigin } from './template.js'

export const atlasPx = 256
const tilePx = atlasPx / 2

type Rgb = readonly [number, number, number]

/**
 * The texture of all people: cloth (multiplied by the garment's colour), two hi-vis vests in their own colours, and a
 * face (multiplied by the skin). RGBA, `atlasPx x atlasPx x 4`, row 0 at v = 0.
 */
export function atlasRgba(): Uint8Array {
  const rgba = new Uint8Array(atlasPx * atlasPx * 4).fill(255)
  const random = new Random('atlas')
  const grain = Float32Array.from({ length: tilePx * tilePx }, () => random.next())
  const tile = (name: Tile, of: (u: number, v: number, grain: number) => Rgb): void => {
    const [u0, v0] = tileOrigin[name]
    for (let y = 0; y < tilePx; y++) {
      for (let x = 0; x < tilePx; x++) {
        const color = of((x / tilePx - 0.02) / 0.96, (y / tilePx - 0.02) / 0.96, grain[y * tilePx + x] ?? 0)
        const at = ((y + v0 * atlasPx) * atlasPx + x + u0 * atlasPx) * 4
        color.forEach((channel, i) => (rgba[at + i] = Math.max(0, Math.min(255, Math.round(channel)))))
      }
    }
  }
  tile('cloth', cloth)
  tile('vest-yellow', (u, v, g) => vest(u, v, g, [206, 226, 34]))
  tile('vest-orange', (u, v, g) => vest(u, v, g, [242, 98, 28]))
  tile('face', face)
  return rgba
}

/** Broad folds and a weave, brighter than mid grey on the whole. */
function cloth(u: number, v: number, grain: number): Rgb {
  const folds =
    Math.sin(v * 41 + 3 * Math.sin(u * 12.6)) * 0.5 + Math.sin(u * 37.7 + 4 * Math.sin(v * 9)) * 0.5
  const grey = 222 + folds * 20 + (grain - 0.5) * 26
  return [grey, grey, grey]
}

function vest(u: number, v: number, grain: number, base: Rgb): Rgb {
  const nearFront = Math.abs(u - 0.25)
  const nearBack = Math.abs(u - 0.75)
  const level = (low: number, high: number): boolean => v > low && v < high
  const belts = level(0.16, 0.25) || level(0.4, 0.49)
  const braces = v > 0.45 && (Math.abs(nearFront - 0.095) < 0.022 || Math.abs(nearBack - 0.095) < 0.022)
  const shade = Math.sin(v * 30 + 3 * Math.sin(u * 12.6)) * 0.05 + 0.97 + (grain - 0.5) * 0.08
  if (belts || braces) {
    const silver = 205 * shade
    return [silver, silver, silver * 1.02]
  }
  if (nearFront < 0.006) return [70, 70, 60]
  if (v > 0.95) return [90, 90, 90]
  const border = nearFront < 0.02 || v < 0.04 ? 0.86 : 1
  return [base[0] * shade * border, base[1] * shade * border, base[2] * shade * border]
}

/** u = 0.25 is the nose line, v = 0.5 the middle of the skull. */
function face(u: number, v: number, grain: number): Rgb {
  const across = (u - 0.25) * 2 * Math.PI * 0.085
  const up = (v - 0.5) * 0.3
  const spot = (x: number, y: number, rx: number, ry: number): number => {
    const d = ((Math.abs(across) - x) / rx) ** 2 + ((up - y) / ry) ** 2
    return Math.max(0, 1 - d)
  }
  if (Math.abs(u - 0.25) > 0.24) return [248, 246, 244]
  const tone = 244 + (grain - 0.5) * 8
  const brow = spot(0.03, 0.022, 0.017, 0.005) > 0 ? 0.62 : 1
  const socket = 1 - 0.3 * spot(0.03, 0.004, 0.02, 0.014)
  const mouth = spot(0, -0.068, 0.026, 0.007)
  const jaw = 1 - 0.12 * spot(0, -0.095, 0.05, 0.04)
  const cheeks = 0.06 * spot(0.038, -0.03, 0.022, 0.02)
  if (spot(0.031, 0.003, 0.012, 0.0065) > 0)
    return spot(0.031, 0.003, 0.006, 0.006) > 0 ? [70, 52, 44] : [238, 232, 226]
  const shade = tone * brow * socket * jaw
  return [shade * (1 - 0.12 * mouth), shade * (1 - 0.42 * mouth - cheeks), shade * (1 - 0.4 * mouth - cheeks)]
}
