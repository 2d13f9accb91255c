import {
  AdditiveBlending,
  type Camera,
  DepthTexture,
  FloatType,
  HalfFloatType,
  type Mesh,
  MeshBasicMaterial,
  NearestFilter,
  type PerspectiveCamera,
  type Scene,
  ShaderMaterial,
  Vector3,
  type WebGLRenderer,
  WebGLRenderTarget,
} from 'three'
import { isMesh } from '../geometry/solid.js'
import { type Light } from '../world/lighting.js'
import { Random } from '../world/random.js'
import { type Lights, aimSky, jitterSun } from './lights.js'
import { ScreenPass } from './passes.js'

/** The still part of a picture, from one camera pose: light linear, `shade` without the key light. */
export interface Background {
  readonly lit: WebGLRenderTarget
  /** Alpha is 1 where the ground is, on which moving shadows fall. */
  readonly shade: WebGLRenderTarget
  readonly depth: WebGLRenderTarget
  dispose(): void
}

/**
 * Renders what stands still, once, with many light directions and sub-pixel offsets: soft shadows, ambient occlusion
 * and smooth edges that no software renderer could afford in every frame.
 */
export class Baker {
  readonly #single: WebGLRenderTarget
  readonly #add = new ScreenPass(
    'in vec2 spot; out vec4 color; uniform sampler2D source; uniform float share; void main() { color = vec4(texture(source, spot).rgb * share, share); }',
    { source: { value: null }, share: { value: 1 } },
    { blending: AdditiveBlending, transparent: true, premultipliedAlpha: true },
  )
  readonly #groundFlag = new ShaderMaterial({
    vertexShader:
      'varying float height; void main() { vec4 world = modelMatrix * vec4(position, 1.0); height = world.y; gl_Position = projectionMatrix * viewMatrix * world; }',
    fragmentShader: 'varying float height; void main() { gl_FragColor = vec4(height < 0.05 ? 1.0 : 0.0); }',
  })
  readonly #combine = new ScreenPass(
    `in vec2 spot; out vec4 color; uniform sampler2D lit; uniform sampler2D key; uniform sampler2D ground;
    void main() { color = vec4(max(texture(lit, spot).rgb - texture(key, spot).rgb, vec3(0.0)), texture(ground, spot).r); }`,
    { lit: { value: null }, key: { value: null }, ground: { value: null } },
  )

  constructor(
    readonly renderer: WebGLRenderer,
    readonly scene: Scene,
    readonly lights: Lights,
    readonly light: Light,
    readonly centre: Vector3,
    readonly widthPx: number,
    readonly heightPx: number,
  ) {
    this.#single = new WebGLRenderTarget(widthPx, heightPx, { type: HalfFloatType, depthBuffer: true })
  }

  /** @param passes - light directions; 4 is rough, 32 is smooth */
  bake(camera: PerspectiveCamera, passes: number): Background {
    const { lights } = this
    for (const lamp of lights.lamps) lamp.castShadow = true
    const random = new Random('bake')
    const lit = this.#accumulate(
      camera,
      passes,
      () => {
        lights.sky.visible = false
        lights.skySample.visible = true
        lights.bounce.visible = true
      },
      (k) => {
        aimSky(lights, this.centre, k, passes, random)
        jitterSun(lights, this.light, this.centre, random)
      },
    )
    const keyPasses = Math.max(1, Math.round(passes / 4))
    const key = this.#accumulate(
      camera,
      keyPasses,
      () => this.#onlyKey(),
      () => jitterSun(lights, this.light, this.centre, random),
    )
    this.#restore()
    const ground = this.#flat(camera, this.#groundFlag)
    const shade = new WebGLRenderTarget(this.widthPx, this.heightPx, {
      type: HalfFloatType,
      depthBuffer: false,
      minFilter: NearestFilter,
      magFilter: NearestFilter,
    })
    Object.assign(this.#combine.uniforms.lit, { value: lit.texture })
    Object.assign(this.#combine.uniforms.key, { value: key.texture })
    Object.assign(this.#combine.uniforms.ground, { value: ground.texture })
    this.#combine.run(this.renderer, shade)
    key.dispose()
    ground.dispose()
    const depth = this.#flat(camera, new MeshBasicMaterial({ colorWrite: false }), true)
    return { lit, shade, depth, dispose: () => [lit, shade, depth].forEach((target) => target.dispose()) }
  }

  dispose(): void {
    this.#single.dispose()
  }

  #onlyKey(): void {
    const { lights, light } = this
    const sunIsKey = light.sunStrength > 0.3
    lights.root.children.forEach((child) => (child.visible = false))
    lights.sun.visible = sunIsKey
    if (!sunIsKey && lights.lamps[0] !== undefined) keyLamp(lights, this.centre).visible = true
    this.scene.getObjectByName('sky')!.visible = false
  }

  #restore(): void {
    this.lights.root.children.forEach((child) => (child.visible = true))
    this.lights.skySample.visible = false
    this.lights.bounce.visible = false
    // What moves stands under the lamps, not behind things; their shadow maps would double its cost.
    for (const lamp of this.lights.lamps) lamp.castShadow = false
    this.scene.getObjectByName('sky')!.visible = true
    this.lights.sun.position
      .copy(this.centre)
      .add(new Vector3(...this.light.sunFrom).normalize().multiplyScalar(40))
    this.lights.sun.shadow.needsUpdate = true
  }

  #accumulate(
    camera: PerspectiveCamera,
    passes: number,
    prepare: () => void,
    step: (k: number) => void,
  ): WebGLRenderTarget {
    const sum = new WebGLRenderTarget(this.widthPx, this.heightPx, {
      type: HalfFloatType,
      depthBuffer: false,
      minFilter: NearestFilter,
      magFilter: NearestFilter,
    })
    this.renderer.setRenderTarget(sum)
    this.renderer.setClearColor(0x000000, 0)
    this.renderer.clear()
    prepare()
    const view = camera.clone()
    for (let k = 0; k < passes; k++) {
      step(k)
      view.setViewOffset(
        this.widthPx,
        this.heightPx,
        ((k * 0.7548776662) % 1) - 0.5,
        ((k * 0.5698402909) % 1) - 0.5,
        this.widthPx,
        this.heightPx,
      )
      this.renderer.setRenderTarget(this.#single)
      this.renderer.render(this.scene, view)
      Object.assign(this.#add.uniforms.source, { value: this.#single.texture })
      Object.assign(this.#add.uniforms.share, { value: 1 / passes })
      this.renderer.autoClear = false
      this.#add.run(this.renderer, sum)
      this.renderer.autoClear = true
    }
    return sum
  }

  #flat(camera: Camera, material: ShaderMaterial | MeshBasicMaterial, withDepth = false): WebGLRenderTarget {
    const target = new WebGLRenderTarget(this.widthPx, this.heightPx, {
      depthBuffer: true,
      minFilter: NearestFilter,
      magFilter: NearestFilter,
    })
    if (withDepth) target.depthTexture = new DepthTexture(this.widthPx, this.heightPx, FloatType)
    const hidden: Mesh[] = []
    this.scene.traverse((object) => {
      if (isMesh(object) && object.visible && (object.name === 'sky' || object.name === 'mesh')) {
        object.visible = false
        hidden.push(object)
      }
    })
    this.scene.overrideMaterial = material
    this.renderer.setRenderTarget(target)
    this.renderer.render(this.scene, camera)
    this.scene.overrideMaterial = null
    hidden.forEach((object) => (object.visible = true))
    return target
  }
}

/** The lamp that throws the shadows one sees: the strongest at the middle of the picture. */
export function keyLamp(lights: Lights, centre: Vector3): Lights['lamps'][number] {
  const strengthAt = (lamp: Lights['lamps'][number]): number =>
    lamp.intensity / lamp.position.distanceToSquared(centre)
  return lights.lamps.reduce((best, lamp) => (strengthAt(lamp) > strengthAt(best) ? lamp : best))
}
