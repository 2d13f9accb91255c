import {
  AddEquation,
  CustomBlending,
  Group,
  MaxEquation,
  Mesh,
  type Object3D,
  OneFactor,
  PlaneGeometry,
  ShaderMaterial,
  type Vector4,
  DoubleSide,
} from 'three'
import { type SimWorld } from '../world/world.js'

/**
 * Shadows of what moves, drawn flat on the ground into a mask: red the shadow of the key light, green the dimness
 * under a body. `key` is a direction towards the light (w = 0) or the light's place (w = 1).
 */
export class MovingShadows {
  readonly root = new Group()
  readonly #flat: ShaderMaterial
  readonly #contact: { update(): void }[] = []

  constructor(world: SimWorld, key: Vector4) {
    this.#flat = new ShaderMaterial({
      uniforms: { key: { value: key } },
      depthTest: false,
      depthWrite: false,
      side: DoubleSide,
      blending: CustomBlending,
      blendEquation: MaxEquation,
      blendSrc: OneFactor,
      blendDst: OneFactor,
      vertexShader: `uniform vec4 key;
        void main() {
          vec3 p = (modelMatrix * vec4(position, 1.0)).xyz;
          vec3 way = key.w > 0.5 ? key.xyz - p : key.xyz;
          float drop = max(p.y, 0.0) / max(way.y, 0.25);
          gl_Position = projectionMatrix * viewMatrix * vec4(p.x - way.x * drop, 0.002, p.z - way.z * drop, 1.0);
        }`,
      fragmentShader: 'void main() { gl_FragColor = vec4(0.92, 0.0, 0.0, 1.0); }',
    })
    for (const { body } of world.people) {
      this.#contact.push(
        this.#blob(0.42, 0.42, (blob) => {
          const bounds = body.position
          // The first ring of the hips tube is the middle of the body.
          blob.position.set(bounds[0] ?? 0, 0.01, bounds[2] ?? 0)
        }),
      )
    }
    for (const { machine } of world.machines) {
      this.#contact.push(
        this.#blob(machine.halfWidthM * 1.35, machine.halfLengthM * 1.25, (blob) => {
          blob.position.copy(machine.group.position).setY(0.01)
          blob.rotation.y = machine.group.rotation.y
        }),
      )
    }
  }

  get material(): ShaderMaterial {
    return this.#flat
  }

  update(): void {
    for (const contact of this.#contact) contact.update()
    this.root.updateMatrixWorld(true)
  }

  #blob(halfX: number, halfZ: number, place: (blob: Object3D) => void): { update(): void } {
    const geometry = new PlaneGeometry(2 * halfX, 2 * halfZ).rotateX(-Math.PI / 2)
    const material = new ShaderMaterial({
      depthTest: false,
      depthWrite: false,
      blending: CustomBlending,
      blendEquation: AddEquation,
      blendSrc: OneFactor,
      blendDst: OneFactor,
      vertexShader:
        'varying vec2 at; void main() { at = uv * 2.0 - 1.0; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }',
      fragmentShader:
        'varying vec2 at; void main() { float d = 1.0 - smoothstep(0.1, 1.0, length(at)); gl_FragColor = vec4(0.0, d, 0.0, 1.0); }',
    })
    const blob = new Mesh(geometry, material)
    this.root.add(blob)
    return { update: () => place(blob) }
  }
}
