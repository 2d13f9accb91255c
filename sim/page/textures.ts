import { DataTexture, LinearFilter, LinearMipmapLinearFilter, RepeatWrapping, SRGBColorSpace } from 'three'
import { atlasPx, atlasRgba } from '../body/atlas.js'
import { type Surface, surfaces } from '../geometry/solid.js'
import { Random } from '../world/random.js'

const sidePx = 256

/** Grey value (0-1, multiplied by the solid's colour) and opacity at a point of the repeating tile. */
type Pattern = (u: number, v: number, noise: TileNoise) => number | readonly [number, number]

/** Value noise that repeats with the tile. */
class TileNoise {
  readonly #grid: Float32Array

  constructor(seed: string) {
    const random = new Random('texture', seed)
    this.#grid = Float32Array.from({ length: 64 * 64 }, () => random.next())
  }

  /** One octave with `cells` cells across the tile, 0-1. `cells` divides the tile, so it wraps. */
  at(u: number, v: number, cells: number): number {
    const [x, y] = [u * cells, v * cells]
    const [x0, y0] = [Math.floor(x), Math.floor(y)]
    const [fx, fy] = [x - x0, y - y0]
    const cell = (dx: number, dy: number): number =>
      this.#grid[(((y0 + dy) % cells) & 63) * 64 + (((x0 + dx) % cells) & 63)] ?? 0
    const [sx, sy] = [fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)]
    const low = cell(0, 0) + (cell(1, 0) - cell(0, 0)) * sx
    const high = cell(0, 1) + (cell(1, 1) - cell(0, 1)) * sx
    return low + (high - low) * sy
  }

  /** Octaves from `cells` upwards, each half as strong, 0-1. */
  cloud(u: number, v: number, cells: number, octaves: number): number {
    let sum = 0
    let weight = 0
    for (let octave = 0; octave < octaves; octave++) {
      sum += this.at(u, v, cells << octave) / (1 << octave)
      weight += 1 / (1 << octave)
    }
    return sum / weight
  }
}

const stripes = (value: number, width: number): number => (value - Math.floor(value) < width ? 1 : 0)

const patterns: Readonly<Record<Surface, Pattern>> = {
  paint: (u, v, n) =>
    0.9 +
    0.1 * n.cloud(u, v, 4, 4) -
    (n.at(u, v, 64) > 0.97 ? 0.15 : 0) -
    0.12 * Math.max(0, n.cloud(u, v, 2, 2) - 0.6),
  metal: (u, v, n) => 0.82 + 0.18 * n.at(u, v * 0.25, 64) - 0.1 * n.cloud(u, v, 4, 3),
  concrete: (u, v, n) => {
    const stain = Math.max(0, n.cloud(u, v, 2, 3) - 0.5) * 0.5
    const joint = stripes(u, 0.006) || stripes(v, 0.006) ? 0.2 : 0
    return 0.72 + 0.28 * n.cloud(u, v, 8, 4) - stain - joint - (n.at(u, v, 64) > 0.93 ? 0.1 : 0)
  },
  asphalt: (u, v, n) =>
    0.6 +
    0.3 * n.at(u, v, 64) +
    0.2 * n.cloud(u, v, 2, 5) -
    (Math.abs(n.cloud(u, v, 2, 3) - 0.5) < 0.006 ? 0.2 : 0),
  brick: (u, v, n) => {
    const row = v * 16
    const column = u * 6 + (Math.floor(row) % 2) * 0.5
    if (row - Math.floor(row) < 0.12 || column - Math.floor(column) < 0.05) return 0.86
    return 0.58 + 0.35 * n.at(Math.floor(column % 6) / 6, Math.floor(row) / 16, 64) + 0.14 * n.at(u, v, 64)
  },
  corrugated: (u, v, n) =>
    0.8 +
    0.16 * Math.sin(u * 2 * Math.PI * 8) +
    0.06 * n.cloud(u, v, 4, 3) -
    0.12 * Math.max(0, n.at(u, v * 0.1, 16) - 0.7),
  wood: (u, v, n) =>
    0.68 + 0.3 * n.at(u * 0.25, v, 32) + 0.1 * n.at(u, v, 64) - (stripes(v * 4, 0.04) ? 0.3 : 0),
  dirt: (u, v, n) =>
    0.45 +
    0.45 * n.cloud(u, v, 4, 5) +
    0.25 * (n.at(u, v, 64) - 0.5) +
    (n.at(u, v, 32) > 0.9 ? 0.2 : 0) -
    0.3 * Math.max(0, n.cloud(u, v, 2, 2) - 0.55),
  rubber: (u, v, n) => 0.75 + 0.25 * n.cloud(u, v, 8, 3),
  glass: (u, v, n) => 0.8 + 0.5 * Math.max(0, n.cloud(u, v, 2, 2) - 0.4),
  cloth: (u, v, n) => 0.86 + 0.1 * n.cloud(u, v, 4, 3) + 0.05 * n.at(u, v, 64),
  glow: () => 1,
  grass: (u, v, n) => 0.45 + 0.4 * n.cloud(u, v, 8, 4) + 0.3 * (n.at(u, v, 64) - 0.5),
  mesh: (u, v) => [1, stripes(u * 8, 0.16) || stripes(v * 8, 0.16) ? 1 : 0],
}

/** One repeating texture for each surface. */
export function surfaceTextures(): Record<Surface, DataTexture> {
  const entries = surfaces.map((surface) => [surface, textureOf(surface)] as const)
  return Object.fromEntries(entries) as Record<Surface, DataTexture>
}

function textureOf(surface: Surface): DataTexture {
  const noise = new TileNoise(surface)
  const rgba = new Uint8Array(sidePx * sidePx * 4)
  for (let y = 0; y < sidePx; y++) {
    for (let x = 0; x < sidePx; x++) {
      const drawn = patterns[surface](x / sidePx, y / sidePx, noise)
      const [grey, alpha] = typeof drawn === 'number' ? [drawn, 1] : drawn
      const byte = Math.max(0, Math.min(255, Math.round(grey * 255)))
      rgba.set([byte, byte, byte, alpha * 255], (y * sidePx + x) * 4)
    }
  }
  return finished(new DataTexture(rgba, sidePx, sidePx))
}

export function personTexture(): DataTexture {
  const texture = finished(new DataTexture(atlasRgba(), atlasPx, atlasPx))
  // Mipmaps would bleed one tile of the atlas into the next.
  texture.generateMipmaps = false
  texture.minFilter = LinearFilter
  return texture
}

function finished(texture: DataTexture): DataTexture {
  texture.wrapS = RepeatWrapping
  texture.wrapT = RepeatWrapping
  texture.magFilter = LinearFilter
  texture.minFilter = LinearMipmapLinearFilter
  texture.generateMipmaps = true
  texture.anisotropy = 4
  texture.colorSpace = SRGBColorSpace
  texture.needsUpdate = true
  return texture
}

/** White noise for the sensor: independent in all four channels, read pixel by pixel. */
export function grainTexture(): DataTexture {
  const random = new Random('grain')
  const bytes = Uint8Array.from({ length: sidePx * sidePx * 4 }, () =>
    Math.round((random.next() + random.next() + random.next()) * 85),
  )
  const texture = new DataTexture(bytes, sidePx, sidePx)
  texture.needsUpdate = true
  return texture
}
