import { BufferAttribute, BufferGeometry, Matrix4, Mesh, Quaternion, Vector3 } from 'three'
import { palette } from '../scenario/palette.js'
import { type Headgear, type Look } from '../scenario/schema.js'
import { type PersonState } from '../world/motion.js'
import {
  beanieTemplate,
  bootTemplate,
  capTemplate,
  cartonTemplate,
  chinM,
  hairTemplate,
  handTemplate,
  headTemplate,
  neckTemplate,
  helmetTemplate,
  hoodTemplate,
} from './head.js'
import { armRings, legRings } from './limbs.js'
import { type Measures, type Skeleton, measuresOf } from './skeleton.js'
import { type LimbRing, type Ring, type RingPaint, Tube, limbRings } from './tube.js'
import { torsoRings, torsoShape } from './torso.js'
import { type Tile } from './template.js'

/** What the truth tells apart in a person. */
export const personParts = ['body', 'torso', 'head', 'headgear', 'carton'] as const
export type PersonPart = (typeof personParts)[number]

/** Vertices `[firstVertex, firstVertex + vertexCount)` and indices `[firstIndex, ...)` of one part, maybe several runs. */
export interface PartRange {
  readonly part: PersonPart
  readonly firstIndex: number
  readonly indexCount: number
}

interface Rigid {
  readonly firstVertex: number
  readonly template: BufferGeometry
}

const scale1 = new Vector3(1, 1, 1)
/** Nothing left to see, at a point of the body, so that bounds stay true. */
const vanishedAt = (point: Vector3): Matrix4 => new Matrix4().makeScale(0, 0, 0).setPosition(point)

/** One person as one mesh whose vertices are written anew for every pose, in world space. */
export class PersonMesh {
  readonly measures: Measures
  readonly mesh: Mesh
  readonly parts: readonly PartRange[]
  readonly #geometry = new BufferGeometry()
  readonly #girth: number
  readonly #size: number
  readonly #tubes: Readonly<Record<'hips' | 'torso' | 'armL' | 'armR' | 'legL' | 'legR', Tube>>
  readonly #rigid: Partial<
    Record<'head' | 'neck' | 'hair' | 'headgear' | 'handL' | 'handR' | 'bootL' | 'bootR' | 'carton', Rigid>
  > = {}
  readonly #arms: readonly LimbRing[]
  readonly #legs: readonly LimbRing[]
  readonly #arrays

  constructor(
    readonly look: Required<Look>,
    readonly headgear: Headgear,
  ) {
    this.#size = look.heightM / 1.75
    this.#girth = this.#size * look.build
    this.measures = measuresOf(look.heightM, look.build)
    const skin = palette.skin[look.skin]
    const shirt = palette.cloth[look.shirt]
    const trousers = palette.cloth[look.trousers]
    const jacket =
      look.vest === 'jacket-yellow' ? 0xd8e021 : look.vest === 'jacket-orange' ? 0xf0641e : undefined
    this.#arms = armRings(jacket ?? shirt, skin, jacket !== undefined || look.build < 1.02)
    this.#legs = legRings(trousers)

    const indices: number[] = []
    const parts: PartRange[] = []
    let vertices = 0
    const took = (part: PersonPart, list: readonly number[], vertexCount: number): void => {
      parts.push({ part, firstIndex: indices.length, indexCount: list.length })
      indices.push(...list)
      vertices += vertexCount
    }
    const tube = (
      part: PersonPart,
      paints: readonly RingPaint[],
      tile: Tile,
      around: number,
      goesUp = false,
    ): Tube => {
      const made = new Tube(vertices, paints, tile, around, goesUp)
      took(part, made.indices, made.vertexCount)
      return made
    }
    /** What hangs below the chin of long hair or a hood is no part of the head, whose box ends there. */
    const rigid = (
      part: PersonPart,
      key: keyof PersonMesh['rigidKeys'],
      template: BufferGeometry | undefined,
    ): void => {
      if (template === undefined) return
      this.#rigid[key] = { firstVertex: vertices, template }
      const index = template.getIndex()
      if (index === null) throw new TypeError('templates are indexed')
      const position = template.getAttribute('position')
      const own: number[] = []
      const hanging: number[] = []
      for (let i = 0; i < index.count; i += 3) {
        const corners = [index.getX(i), index.getX(i + 1), index.getX(i + 2)]
        const hangs =
          (key === 'hair' || key === 'headgear') && corners.some((at) => position.getY(at) < chinM)
        ;(hangs ? hanging : own).push(...corners.map((at) => at + vertices))
      }
      took(part, own, 0)
      took('body', hanging, position.count)
    }

    const vestTile: Tile =
      look.vest === 'none' ? 'cloth' : look.vest.endsWith('yellow') ? 'vest-yellow' : 'vest-orange'
    const upperHex = look.vest === 'none' ? shirt : 0xffffff
    this.#tubes = {
      hips: tube(
        'body',
        torsoShape.hips.map(({ v }) => ({ hex: trousers, v })),
        'cloth',
        18,
        true,
      ),
      torso: tube(
        'torso',
        torsoShape.upper.map(({ v }) => ({ hex: upperHex, v })),
        vestTile,
        20,
        true,
      ),
      armL: tube('body', this.#arms, 'cloth', 12),
      armR: tube('body', this.#arms, 'cloth', 12),
      legL: tube('body', this.#legs, 'cloth', 14),
      legR: tube('body', this.#legs, 'cloth', 14),
    }
    const hair =
      headgear.kind === 'none' || headgear.inHand || headgear.kind === 'helmet' ? look.hair : 'bald'
    rigid('head', 'head', headTemplate(skin))
    rigid('body', 'neck', neckTemplate(skin))
    rigid(
      'head',
      'hair',
      hairTemplate(
        headgear.kind === 'cap' || headgear.kind === 'beanie' ? look.hair : hair,
        palette.hair[look.hairColor],
      ),
    )
    rigid('headgear', 'headgear', headgearTemplate(headgear, shirt))
    const glove = look.vest !== 'none' && look.build > 0.95 ? 0x3f4146 : skin
    rigid('body', 'handL', handTemplate(glove))
    rigid('body', 'handR', handTemplate(glove))
    rigid('body', 'bootL', bootTemplate(0x3a2c20))
    rigid('body', 'bootR', bootTemplate(0x3a2c20))
    rigid('carton', 'carton', cartonTemplate())
    this.parts = parts

    this.#arrays = {
      position: new Float32Array(vertices * 3),
      normal: new Float32Array(vertices * 3),
      color: new Float32Array(vertices * 3),
      uv: new Float32Array(vertices * 2),
    }
    for (const made of Object.values(this.#tubes)) made.writeFixed(this.#arrays)
    for (const { firstVertex, template } of Object.values(this.#rigid)) {
      this.#arrays.color.set(template.getAttribute('color').array, firstVertex * 3)
      this.#arrays.uv.set(template.getAttribute('uv').array, firstVertex * 2)
    }
    this.#geometry.setIndex(indices)
    this.#geometry.setAttribute('position', new BufferAttribute(this.#arrays.position, 3))
    this.#geometry.setAttribute('normal', new BufferAttribute(this.#arrays.normal, 3))
    this.#geometry.setAttribute('color', new BufferAttribute(this.#arrays.color, 3))
    this.#geometry.setAttribute('uv', new BufferAttribute(this.#arrays.uv, 2))
    this.mesh = new Mesh(this.#geometry)
    this.mesh.frustumCulled = false
  }

  /** Only for naming the rigid parts in types. */
  declare readonly rigidKeys: Record<
    'head' | 'neck' | 'hair' | 'headgear' | 'handL' | 'handR' | 'bootL' | 'bootR' | 'carton',
    true
  >

  /** World-space positions, `vertexCount x 3`, as of the last pose. Borrowed. */
  get position(): Float32Array {
    return this.#arrays.position
  }

  get index(): ArrayLike<number> {
    return this.#geometry.getIndex()?.array ?? []
  }

  /** Writes all vertices for one skeleton. */
  pose(s: Skeleton, state: PersonState): void {
    const m = this.measures
    const put = (tube: Tube, rings: readonly Ring[]): void => tube.writePose(this.#arrays, rings)
    const waist = this.#girth
    put(this.#tubes.hips, torsoRings(torsoShape.hips, s, m, waist, 1))
    put(this.#tubes.torso, torsoRings(torsoShape.upper, s, m, waist, this.look.vest === 'none' ? 1 : 1.06))
    put(
      this.#tubes.armL,
      limbRings(this.#arms, s.shoulders[0], s.elbows[0], s.wrists[0], s.upperArmQ[0], s.forearmQ[0], waist),
    )
    put(
      this.#tubes.armR,
      limbRings(this.#arms, s.shoulders[1], s.elbows[1], s.wrists[1], s.upperArmQ[1], s.forearmQ[1], waist),
    )
    put(
      this.#tubes.legL,
      limbRings(this.#legs, s.hips[0], s.knees[0], s.ankles[0], s.thighQ[0], s.shinQ[0], waist),
    )
    put(
      this.#tubes.legR,
      limbRings(this.#legs, s.hips[1], s.knees[1], s.ankles[1], s.thighQ[1], s.shinQ[1], waist),
    )

    const size = scale1.clone().multiplyScalar(this.#size)
    const at = (point: Vector3, q: Quaternion): Matrix4 => new Matrix4().compose(point, q, size)
    const skull = new Vector3(0, 0.1, 0.012)
      .multiplyScalar(this.#size)
      .applyQuaternion(s.headQ)
      .add(s.neckTop)
    const head = at(skull, s.headQ)
    this.#place('head', head)
    this.#place('neck', head)
    this.#place('hair', head)
    this.#place('handL', at(s.wrists[0], s.forearmQ[0]))
    this.#place('handR', at(s.wrists[1], s.forearmQ[1]))
    this.#place('bootL', at(s.ankles[0], s.footQ[0]))
    this.#place('bootR', at(s.ankles[1], s.footQ[1]))
    this.#place('headgear', state.helmet === 'in_hand' ? this.#inHand(s) : head)
    this.#place('carton', state.carries ? this.#betweenHands(s) : vanishedAt(s.pelvis))
    for (const name of ['position', 'normal']) this.#geometry.getAttribute(name).needsUpdate = true
  }

  /** A helmet hangs from the right hand by its brim, its opening to the side. */
  #inHand(s: Skeleton): Matrix4 {
    const tilt = s.forearmQ[1].clone().multiply(new Quaternion().setFromAxisAngle(new Vector3(0, 0, 1), 1.9))
    const centre = new Vector3(-0.02, -0.2, 0.01).applyQuaternion(s.forearmQ[1]).add(s.wrists[1])
    return new Matrix4().compose(centre, tilt, scale1).multiply(new Matrix4().makeTranslation(0, -0.06, 0))
  }

  #betweenHands(s: Skeleton): Matrix4 {
    const centre = s.wrists[0].clone().add(s.wrists[1]).multiplyScalar(0.5)
    const forward = new Vector3(0, 0.08, 0.14).applyQuaternion(s.chestQ)
    return new Matrix4().compose(centre.add(forward), s.chestQ, scale1)
  }

  #place(key: keyof PersonMesh['rigidKeys'], matrix: Matrix4): void {
    const rigid = this.#rigid[key]
    if (rigid === undefined) return
    const position = rigid.template.getAttribute('position')
    const normal = rigid.template.getAttribute('normal')
    const point = new Vector3()
    for (let i = 0; i < position.count; i++) {
      point
        .fromBufferAttribute(position, i)
        .applyMatrix4(matrix)
        .toArray(this.#arrays.position, (rigid.firstVertex + i) * 3)
      point
        .fromBufferAttribute(normal, i)
        .transformDirection(matrix)
        .toArray(this.#arrays.normal, (rigid.firstVertex + i) * 3)
    }
  }
}

function headgearTemplate(headgear: Headgear, shirtHex: number): BufferGeometry | undefined {
  const hex = palette.helmet[headgear.color]
  switch (headgear.kind) {
    case 'helmet':
      return helmetTemplate(headgear.shape, hex)
    case 'cap':
      return capTemplate(hex)
    case 'beanie':
      return beanieTemplate(hex)
    case 'hood':
      return hoodTemplate(shirtHex)
    case 'none':
      return undefined
    default:
      return headgear.kind satisfies never
  }
}
