import { AmbientLight, DirectionalLight, Group, HemisphereLight, SpotLight, Vector3 } from 'three'
import { type Lamp } from '../sites/site.js'
import { type Light } from '../world/lighting.js'
import { type Random } from '../world/random.js'

/** All lights of a scene, with shadow maps of what stands still. */
export interface Lights {
  readonly root: Group
  readonly sun: DirectionalLight
  /** One direction of the sky at a time, for the baked background. */
  readonly skySample: DirectionalLight
  readonly bounce: HemisphereLight
  /** The whole sky at once, for what moves. */
  readonly sky: HemisphereLight
  readonly lamps: readonly SpotLight[]
}

const reachM = 17

export function lightsFor(light: Light, lamps: readonly Lamp[], centre: Vector3): Lights {
  const root = new Group()
  const sun = directional(light.sunHex, light.sunStrength, 2048)
  sun.position.copy(centre).add(new Vector3(...light.sunFrom).normalize().multiplyScalar(40))
  const skySample = directional(light.skyHex, light.ambientStrength * 2, 1024)
  for (const each of [sun, skySample]) {
    each.target.position.copy(centre)
    root.add(each, each.target)
  }
  const sky = new HemisphereLight(light.skyHex, light.groundHex, light.ambientStrength * 0.92)
  const bounce = new HemisphereLight(0x000000, light.groundHex, light.ambientStrength * 0.8)
  const spots = light.lamps > 0 ? lamps.map((lamp) => spotOf(lamp, light.lamps)) : []
  root.add(sky, bounce, new AmbientLight(light.skyHex, light.ambientStrength * 0.06))
  for (const spot of spots) root.add(spot, spot.target)
  return { root, sun, skySample, bounce, sky, lamps: spots }
}

function directional(hex: number, strength: number, mapPx: number): DirectionalLight {
  const light = new DirectionalLight(hex, strength)
  light.castShadow = true
  light.shadow.mapSize.set(mapPx, mapPx)
  Object.assign(light.shadow.camera, {
    left: -reachM,
    right: reachM,
    top: reachM,
    bottom: -reachM,
    near: 1,
    far: 90,
  })
  light.shadow.bias = -0.0006
  light.shadow.normalBias = 0.03
  light.shadow.autoUpdate = false
  light.shadow.needsUpdate = true
  return light
}

function spotOf(lamp: Lamp, share: number): SpotLight {
  const spot = new SpotLight(lamp.hex, lamp.strength * share, 40, 1.25, 0.6, 2)
  spot.position.set(...lamp.at)
  spot.target.position.set(lamp.at[0] * 0.85, 0, lamp.at[2] + 0.6)
  spot.castShadow = true
  spot.shadow.mapSize.set(512, 512)
  spot.shadow.bias = -0.002
  spot.shadow.normalBias = 0.03
  spot.shadow.autoUpdate = false
  spot.shadow.needsUpdate = true
  return spot
}

/** Points the sky sample at stratum `k` of `count`; directions are uniform over the hemisphere. */
export function aimSky(lights: Lights, centre: Vector3, k: number, count: number, random: Random): void {
  const up = 0.04 + 0.96 * ((k + random.next()) / count)
  const around = 2 * Math.PI * ((k * 0.618034) % 1)
  const flat = Math.sqrt(1 - up * up)
  lights.skySample.position
    .copy(centre)
    .add(new Vector3(flat * Math.cos(around), up, flat * Math.sin(around)).multiplyScalar(40))
  lights.skySample.shadow.needsUpdate = true
}

/** Moves the sun within its disc, so that many passes make a soft edge. */
export function jitterSun(lights: Lights, light: Light, centre: Vector3, random: Random): void {
  const spread = 0.02
  const way = new Vector3(...light.sunFrom).normalize()
  way.add(
    new Vector3(
      random.between(-spread, spread),
      random.between(-spread, spread),
      random.between(-spread, spread),
    ),
  )
  lights.sun.position.copy(centre).add(way.normalize().multiplyScalar(40))
  lights.sun.shadow.needsUpdate = true
}
