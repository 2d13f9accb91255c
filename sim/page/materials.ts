import {
  BackSide,
  Color,
  DoubleSide,
  type Material,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  MeshPhongMaterial,
  type Object3D,
  ShaderMaterial,
  SphereGeometry,
  type Texture,
} from 'three'
import { type Surface, isMesh, surfaces } from '../geometry/solid.js'
import { type Light } from '../world/lighting.js'
import { storeLight } from './shaders.js'
import { personTexture, surfaceTextures } from './textures.js'

export interface Materials {
  readonly bySurface: Readonly<Record<Surface, Material>>
  readonly person: Material
}

export function materialsFor(light: Light): Materials {
  const map = surfaceTextures()
  const matt = (texture: Texture): Material => new MeshLambertMaterial({ map: texture, vertexColors: true })
  const shiny = (texture: Texture, shininess: number, specular: number): Material =>
    new MeshPhongMaterial({ map: texture, vertexColors: true, shininess, specular })
  const glow = new MeshBasicMaterial({
    vertexColors: true,
    color: new Color().setScalar(0.7 + 2.2 * light.lamps),
  })
  return {
    person: new MeshLambertMaterial({ map: personTexture(), vertexColors: true, side: DoubleSide }),
    bySurface: {
      paint: shiny(map.paint, 28, 0x1d1d1d),
      metal: shiny(map.metal, 40, 0x3a3a3a),
      glass: shiny(map.glass, 90, 0x8899aa),
      concrete: matt(map.concrete),
      asphalt: matt(map.asphalt),
      brick: matt(map.brick),
      corrugated: matt(map.corrugated),
      wood: matt(map.wood),
      dirt: matt(map.dirt),
      rubber: matt(map.rubber),
      cloth: matt(map.cloth),
      grass: matt(map.grass),
      glow,
      mesh: new MeshLambertMaterial({ map: map.mesh, vertexColors: true, alphaTest: 0.5, side: DoubleSide }),
    },
  }
}

/** The same materials for what moves: they write light as the frame's target keeps it. */
export function storedMaterials(materials: Materials): Materials {
  const stored = (material: Material): Material => {
    const copy = material.clone()
    copy.onBeforeCompile = (shader) => {
      shader.fragmentShader = shader.fragmentShader.replace('#include <dithering_fragment>', storeLight)
    }
    return copy
  }
  const bySurface = Object.fromEntries(
    surfaces.map((surface) => [surface, stored(materials.bySurface[surface])]),
  )
  return { person: stored(materials.person), bySurface: bySurface as Record<Surface, Material> }
}

/** Gives every mesh under `root` the material of the surface it is named after. */
export function dress(root: Object3D, materials: Materials): void {
  root.traverse((object) => {
    if (!isMesh(object)) return
    const surface = object.name as Surface | ''
    object.material = surface === '' ? materials.person : materials.bySurface[surface]
    object.castShadow = surface !== 'glow' && surface !== 'mesh'
    object.receiveShadow = surface !== 'glow'
  })
}

/** A dome with a gradient and thin clouds, seen over the walls of a site. */
export function skyDome(light: Light): Mesh {
  const material = new ShaderMaterial({
    side: BackSide,
    depthWrite: false,
    uniforms: {
      zenith: { value: new Color(light.zenithHex) },
      horizon: { value: new Color(light.horizonHex) },
    },
    vertexShader: `varying vec3 way; void main() { way = position; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`,
    fragmentShader: `
      varying vec3 way; uniform vec3 zenith; uniform vec3 horizon;
      float hash(vec2 p) { return fract(sin(dot(p, vec2(127.1, 311.7))) * 43758.5453); }
      float noise(vec2 p) {
        vec2 i = floor(p), f = fract(p); f = f * f * (3.0 - 2.0 * f);
        return mix(mix(hash(i), hash(i + vec2(1, 0)), f.x), mix(hash(i + vec2(0, 1)), hash(i + vec2(1, 1)), f.x), f.y);
      }
      void main() {
        vec3 d = normalize(way);
        float up = clamp(d.y, 0.0, 1.0);
        vec3 color = mix(horizon, zenith, pow(up, 0.55));
        vec2 p = d.xz / max(0.08, d.y) * 1.3;
        float cloud = smoothstep(0.45, 0.8, noise(p) * 0.55 + noise(p * 2.3) * 0.3 + noise(p * 5.1) * 0.15);
        color = mix(color, horizon * 1.15, cloud * 0.7 * smoothstep(0.02, 0.2, d.y));
        gl_FragColor = vec4(color, 1.0);
      }`,
  })
  const dome = new Mesh(new SphereGeometry(120, 32, 16), material)
  dome.renderOrder = -1
  return dome
}
