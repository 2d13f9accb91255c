import { type Lighting } from '../scenario/schema.js'
import { type Site } from '../sites/site.js'

/** Light of a scene: colours are sRGB hex, strengths are three.js intensities before `exposure`. */
export interface Light {
  readonly sunFrom: readonly [number, number, number]
  readonly sunHex: number
  readonly sunStrength: number
  readonly skyHex: number
  readonly groundHex: number
  readonly ambientStrength: number
  readonly zenithHex: number
  readonly horizonHex: number
  /** Share of full strength of the site's lamps. */
  readonly lamps: number
  readonly exposure: number
  /** Standard deviation of the sensor's noise, 0-1. */
  readonly noise: number
}

const outdoor: Readonly<Record<Lighting, Omit<Light, 'sunFrom'>>> = {
  day: {
    sunHex: 0xfff3df,
    sunStrength: 3.7,
    skyHex: 0xcfe0f2,
    groundHex: 0x8b8172,
    ambientStrength: 1.25,
    zenithHex: 0x5f93cf,
    horizonHex: 0xd5e2ea,
    lamps: 0,
    exposure: 1.12,
    noise: 0.008,
  },
  dusk: {
    sunHex: 0xff9a55,
    sunStrength: 1.15,
    skyHex: 0x8793b5,
    groundHex: 0x5c5048,
    ambientStrength: 0.8,
    zenithHex: 0x39486e,
    horizonHex: 0xd9926a,
    lamps: 0.55,
    exposure: 1.25,
    noise: 0.016,
  },
  night: {
    sunHex: 0x9fb4dc,
    sunStrength: 0.1,
    skyHex: 0x46557a,
    groundHex: 0x26221f,
    ambientStrength: 0.3,
    zenithHex: 0x05070d,
    horizonHex: 0x141a28,
    lamps: 1,
    exposure: 1.15,
    noise: 0.03,
  },
}

const indoor: Readonly<Record<Lighting, Omit<Light, 'sunFrom'>>> = {
  day: {
    ...outdoor.day,
    sunHex: 0xf4f6ff,
    sunStrength: 0.7,
    skyHex: 0xe6ecf2,
    ambientStrength: 1.25,
    lamps: 0.75,
    exposure: 1.0,
    noise: 0.01,
  },
  dusk: {
    ...outdoor.dusk,
    sunHex: 0xffc592,
    sunStrength: 0.35,
    skyHex: 0xb9bdc9,
    ambientStrength: 0.75,
    lamps: 0.75,
    exposure: 0.95,
    noise: 0.016,
  },
  night: {
    ...outdoor.night,
    sunStrength: 0.03,
    skyHex: 0x8a92a3,
    ambientStrength: 0.4,
    lamps: 0.6,
    exposure: 0.95,
    noise: 0.024,
  },
}

/** Rain hides the sun and greys the sky; indoors it only dims the windows. */
export function lightOf(site: Site, lighting: Lighting, rain: number): Light {
  const base = (site.indoor ? indoor : outdoor)[lighting]
  if (rain === 0 || site.indoor) return { ...base, sunFrom: site.sunFrom }
  return {
    ...base,
    sunFrom: site.sunFrom,
    sunStrength: base.sunStrength * (1 - 0.85 * Math.min(1, rain * 2)),
    ambientStrength: base.ambientStrength * (1 + 0.25 * rain),
    skyHex: lighting === 'day' ? 0xc3c9cf : base.skyHex,
    zenithHex: lighting === 'day' ? 0x8b949d : base.zenithHex,
    horizonHex: lighting === 'day' ? 0xb4bbc1 : lighting === 'dusk' ? 0x77747c : base.horizonHex,
  }
}
