import {
  BufferGeometry,
  Color,
  MeshBasicMaterial,
  Scene,
  type WebGLRenderer,
  WebGLRenderTarget,
  BufferAttribute,
  DoubleSide,
  NoBlending,
} from 'three'
import { isMesh } from '../geometry/solid.js'
import { personParts } from '../body/person-mesh.js'
import { type Scenario } from '../scenario/schema.js'
import { SimWorld, threeCamera } from '../world/world.js'

/**
 * The same world in flat colours: red is the object (people first, then machines, from 1), green the part of a person
 * (from 1, in the order of `personParts`), black whatever has no class. No smoothing, so bytes are ids.
 */
export class IdStage {
  readonly world: SimWorld
  readonly #scene = new Scene()
  readonly #target: WebGLRenderTarget

  constructor(
    readonly renderer: WebGLRenderer,
    scenario: Scenario,
    readonly size: { widthPx: number; heightPx: number },
  ) {
    this.world = new SimWorld(scenario)
    this.#target = new WebGLRenderTarget(size.widthPx, size.heightPx)
    const still = new MeshBasicMaterial({ color: 0 })
    for (const mesh of this.world.site.meshes) {
      if (!isMesh(mesh) || mesh.name === 'mesh') continue
      mesh.material = still
      this.#scene.add(mesh)
    }
    this.world.people.forEach(({ body }, index) => {
      // Parts share vertices where they meet: a triangle has three of its own here, so that its id is not blended.
      const colors = new Float32Array(body.index.length * 3)
      for (const { part, firstIndex, indexCount } of body.parts) {
        for (let i = firstIndex; i < firstIndex + indexCount; i++)
          colors.set([(index + 1) / 255, (personParts.indexOf(part) + 1) / 255, 0], i * 3)
      }
      const geometry = new BufferGeometry()
      geometry.setAttribute('position', new BufferAttribute(new Float32Array(colors.length), 3))
      geometry.setAttribute('color', new BufferAttribute(colors, 3))
      body.mesh.geometry = geometry
      body.mesh.material = new MeshBasicMaterial({
        vertexColors: true,
        side: DoubleSide,
        blending: NoBlending,
      })
    })
    this.world.machines.forEach(({ machine }, index) => {
      const material = new MeshBasicMaterial({
        color: new Color((this.world.people.length + index + 1) / 255, 0, 0),
      })
      machine.group.traverse((object) => {
        if (isMesh(object)) object.material = material
      })
    })
    this.#scene.add(this.world.dynamic)
  }

  /** Draws one frame's ids into `rgba`, top row first. */
  draw(frame: number, rgba: Uint8Array): void {
    const { widthPx, heightPx } = this.size
    this.world.pose(frame)
    for (const { body } of this.world.people) {
      const attribute = body.mesh.geometry.getAttribute('position')
      for (let i = 0; i < attribute.count; i++) {
        const at = (body.index[i] ?? 0) * 3
        attribute.array.set(body.position.subarray(at, at + 3), i * 3)
      }
      attribute.needsUpdate = true
    }
    this.renderer.setClearColor(0x000000, 1)
    this.renderer.setRenderTarget(this.#target)
    this.renderer.render(this.#scene, threeCamera(this.world.cameraAt(frame)))
    this.renderer.readRenderTargetPixels(this.#target, 0, 0, widthPx, heightPx, rgba)
    const row = new Uint8Array(widthPx * 4)
    for (let top = 0, bottom = heightPx - 1; top < bottom; top++, bottom--) {
      const [a, b] = [top * widthPx * 4, bottom * widthPx * 4]
      row.set(rgba.subarray(a, a + row.length))
      rgba.copyWithin(a, b, b + row.length)
      rgba.set(row, b)
    }
  }

  dispose(): void {
    this.#target.dispose()
  }
}
