import {
  BufferAttribute,
  BufferGeometry,
  GLSL3,
  Mesh,
  OrthographicCamera,
  Scene,
  ShaderMaterial,
  type IUniform,
  type WebGLRenderTarget,
  type WebGLRenderer,
} from 'three'

const covering = new BufferGeometry()
covering.setAttribute('position', new BufferAttribute(new Float32Array([-1, -1, 0, 3, -1, 0, -1, 3, 0]), 3))

const vertexShader = `out vec2 spot; void main() { spot = position.xy * 0.5 + 0.5; gl_Position = vec4(position.xy, 0.0, 1.0); }`

/** A shader run once for every pixel of a target. */
export class ScreenPass<Names extends string> {
  readonly #scene = new Scene()
  readonly #camera = new OrthographicCamera()
  readonly mesh: Mesh<BufferGeometry, ShaderMaterial>

  constructor(
    fragmentShader: string,
    readonly uniforms: Record<Names, IUniform>,
    settings: Partial<ShaderMaterial> = {},
  ) {
    const material = new ShaderMaterial({
      glslVersion: GLSL3,
      vertexShader,
      fragmentShader,
      uniforms,
      depthTest: false,
      depthWrite: false,
    })
    Object.assign(material, settings)
    this.mesh = new Mesh(covering, material)
    this.mesh.frustumCulled = false
    this.#scene.add(this.mesh)
  }

  run(renderer: WebGLRenderer, target: WebGLRenderTarget): void {
    renderer.setRenderTarget(target)
    renderer.render(this.#scene, this.#camera)
  }
}
