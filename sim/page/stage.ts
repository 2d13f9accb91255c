import {
  Color,
  AlwaysDepth,
  type Object3D,
  Scene,
  Texture,
  Vector2,
  Vector3,
  Vector4,
  type WebGLRenderer,
  WebGLRenderTarget,
  type PerspectiveCamera,
} from 'three'
import { isMesh } from '../geometry/solid.js'
import { type Scenario } from '../scenario/schema.js'
import { type Light, lightOf } from '../world/lighting.js'
import { type CameraPose, SimWorld, threeCamera } from '../world/world.js'
import { type Background, Baker, keyLamp } from './background.js'
import { type Covered, coveredBy, joined, touch } from './dirty.js'
import { faultUniforms } from './faults.js'
import { type Lights, lightsFor } from './lights.js'
import { dress, materialsFor, skyDome, storedMaterials } from './materials.js'
import { ScreenPass } from './passes.js'
import { grainTexture } from './textures.js'
import { blitShader, cameraShader } from './shaders.js'
import { MovingShadows } from './shadows.js'

export interface StageOptions {
  readonly widthPx: number
  readonly heightPx: number
  /** Light directions of the still background. */
  readonly bakePasses: number
}

/** One scenario, ready to draw any of its frames. */
export class Stage {
  readonly world: SimWorld
  readonly #light: Light
  readonly #still = new Scene()
  readonly #moving = new Scene()
  readonly #lights: Lights
  readonly #baker: Baker
  readonly #shadows: MovingShadows
  readonly #frameTarget: WebGLRenderTarget
  readonly #maskTarget: WebGLRenderTarget
  readonly #outTarget: WebGLRenderTarget
  readonly #blit: ScreenPass<'lit' | 'shade' | 'depth' | 'mask' | 'maskTexel'>
  readonly #camera: ScreenPass<
    'source' | 'sizePx' | 'frame' | 'exposure' | 'noise' | 'rain' | 'blurPx' | 'cover' | 'gain'
  >
  readonly #key: Vector4
  #covered: Covered[] | undefined
  #backgroundKey = ''
  #background: Background | undefined

  constructor(
    readonly renderer: WebGLRenderer,
    scenario: Scenario,
    readonly options: StageOptions,
  ) {
    const { widthPx, heightPx } = options
    const world = (this.world = new SimWorld(scenario))
    const light = (this.#light = lightOf(world.site, scenario.lighting, scenario.rain))
    const materials = materialsFor(light)
    const centre = new Vector3(...world.cameraAt(0).lookAtM).setY(0)
    this.#lights = lightsFor(light, world.site.lamps, centre)
    this.#still.add(...world.site.meshes)
    dress(this.#still, materials)
    dress(world.dynamic, storedMaterials(materials))
    const sky = skyDome(light)
    sky.name = 'sky'
    this.#still.add(sky, this.#lights.root)
    this.#moving.add(world.dynamic)
    this.#baker = new Baker(renderer, this.#still, this.#lights, light, centre, widthPx, heightPx)
    const lamp =
      light.sunStrength > 0.3 || this.#lights.lamps.length === 0 ? undefined : keyLamp(this.#lights, centre)
    this.#key =
      lamp === undefined ? new Vector4(...light.sunFrom, 0) : new Vector4(...lamp.position.toArray(), 1)
    this.#shadows = new MovingShadows(world, this.#key)
    this.#frameTarget = new WebGLRenderTarget(widthPx, heightPx)
    this.#maskTarget = new WebGLRenderTarget(widthPx / 2, heightPx / 2, { depthBuffer: false })
    this.#outTarget = new WebGLRenderTarget(widthPx, heightPx, { depthBuffer: false })
    this.#blit = new ScreenPass(
      blitShader,
      {
        lit: { value: null },
        shade: { value: null },
        depth: { value: null },
        mask: { value: this.#maskTarget.texture },
        maskTexel: { value: new Vector2(2 / widthPx, 2 / heightPx) },
      },
      { depthTest: true, depthWrite: true, depthFunc: AlwaysDepth },
    )
    this.#blit.mesh.renderOrder = -10
    this.#moving.add(this.#blit.mesh)
    this.#camera = new ScreenPass(cameraShader, {
      source: { value: this.#frameTarget.texture },
      grain: { value: grainTexture() },
      sizePx: { value: new Vector2(widthPx, heightPx) },
      frame: { value: 0 },
      exposure: { value: light.exposure },
      noise: { value: 0 },
      rain: { value: world.site.indoor ? 0 : scenario.rain },
      blurPx: { value: 0 },
      cover: { value: 0 },
      gain: { value: 1 },
    })
  }

  /** Draws one frame into `rgba` (`heightPx * widthPx * 4` bytes, top row first). */
  draw(frame: number, rgba: Uint8Array): void {
    const { renderer, world } = this
    const pose = world.cameraAt(frame)
    const camera = threeCamera(pose)
    const background = this.#backgroundFor(pose, camera)
    world.pose(frame)
    this.#drawShadows(camera)

    Object.assign(this.#blit.uniforms.lit, { value: background.lit.texture })
    Object.assign(this.#blit.uniforms.shade, { value: background.shade.texture })
    Object.assign(this.#blit.uniforms.depth, { value: background.depth.depthTexture })
    this.#drawRegions(camera)

    const faults = faultUniforms(world.scenario, frame)
    Object.assign(this.#camera.uniforms.frame, { value: frame })
    Object.assign(this.#camera.uniforms.noise, { value: this.#light.noise + faults.noise })
    Object.assign(this.#camera.uniforms.blurPx, { value: faults.blurPx * (this.options.widthPx / 1280) })
    Object.assign(this.#camera.uniforms.cover, { value: faults.cover })
    Object.assign(this.#camera.uniforms.gain, { value: faults.gain })
    this.#camera.run(renderer, this.#outTarget)
    renderer.readRenderTargetPixels(this.#outTarget, 0, 0, this.options.widthPx, this.options.heightPx, rgba)
  }

  dispose(): void {
    this.#background?.dispose()
    this.#baker.dispose()
    for (const target of [this.#frameTarget, this.#maskTarget, this.#outTarget]) target.dispose()
    for (const light of [this.#lights.sun, this.#lights.skySample, ...this.#lights.lamps]) light.dispose()
    for (const scene of [this.#still, this.#moving]) scene.traverse(disposeMesh)
  }

  /** Redraws only what moving things cover or covered in the frame before; the rest of the target still holds. */
  #drawRegions(camera: PerspectiveCamera): void {
    const { renderer, world } = this
    const { widthPx, heightPx } = this.options
    const covered = coveredBy(world, camera, this.#key, widthPx, heightPx)
    const whole = { x1: 0, y1: 0, x2: widthPx, y2: heightPx }
    const regions = this.#covered === undefined ? [whole] : joined([...this.#covered, ...covered])
    this.#covered = covered
    this.#blit.mesh.visible = true
    this.#moving.add(this.#lights.root)
    renderer.autoClear = false
    this.#frameTarget.scissorTest = true
    for (const region of regions) {
      const { x1, y1, x2, y2 } = region
      // A software GPU sets up every triangle it is given, also those that the scissor drops.
      for (const object of world.dynamic.children) object.visible = false
      for (const each of covered) if (touch(each, region)) each.object.visible = true
      this.#frameTarget.scissor.set(x1, y1, x2 - x1, y2 - y1)
      renderer.setRenderTarget(this.#frameTarget)
      renderer.render(this.#moving, camera)
    }
    for (const object of world.dynamic.children) object.visible = true
    renderer.autoClear = true
    this.#still.add(this.#lights.root)
  }

  #backgroundFor(pose: CameraPose, camera: PerspectiveCamera): Background {
    const key = JSON.stringify(pose)
    if (key !== this.#backgroundKey || this.#background === undefined) {
      this.#background?.dispose()
      // A camera that is being knocked aside needs another background in each frame: those get rougher light.
      const passes = pose.movedShare === 0 ? this.options.bakePasses : Math.min(8, this.options.bakePasses)
      this.#background = this.#baker.bake(camera, passes)
      this.#backgroundKey = key
      this.#covered = undefined
    }
    return this.#background
  }

  #drawShadows(camera: PerspectiveCamera): void {
    const { renderer } = this
    this.#shadows.update()
    renderer.setRenderTarget(this.#maskTarget)
    renderer.setClearColor(new Color(0), 1)
    renderer.clear()
    renderer.autoClear = false
    this.#blit.mesh.visible = false
    this.#moving.overrideMaterial = this.#shadows.material
    renderer.render(this.#moving, camera)
    this.#moving.overrideMaterial = null
    const contacts = new Scene()
    contacts.add(this.#shadows.root)
    renderer.render(contacts, camera)
    renderer.autoClear = true
  }
}

/** Frees a mesh's share of the GPU's memory; a data set is made of hundreds of scenes. */
function disposeMesh(object: Object3D): void {
  if (!isMesh(object)) return
  object.geometry.dispose()
  for (const material of [object.material].flat()) {
    if ('map' in material && material.map instanceof Texture) material.map.dispose()
    material.dispose()
  }
}
