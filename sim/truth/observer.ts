import { type Matrix4, Vector3 } from 'three'
import { isMesh } from '../geometry/solid.js'
import { machineClass } from '../machines/machine.js'
import { type PersonPart, personParts } from '../body/person-mesh.js'
import { pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { faultsAt } from '../world/faults.js'
import { type MachineModel, type PersonModel, type SimWorld, threeCamera } from '../world/world.js'
import { type ClipMesh, clipMeshOf, toClip, viewProjection, visitTriangles } from './clip-space.js'
import { Coverage, type IndexRun, type Seen, outlineCells } from './coverage.js'
import {
  type ClassName,
  type TruthBox,
  type TruthFrame,
  type TruthObject,
  type TruthPerson,
} from './format.js'
import { distanceToMachineM, zonesAt } from './ground.js'

/** Less of a head than this, or a smaller one, tells nobody whether a helmet is on it. */
const headVisibleShare = 0.3
const headVisiblePx = 6
const leastBoxPx = 3
const codesPerObject = 8

interface Bounds {
  x1: number
  y1: number
  x2: number
  y2: number
}

interface Drawn {
  readonly runs: readonly (IndexRun & { readonly code: number })[]
}

/** Sees one world frame by frame, in any order. */
export class Observer {
  #coverage = new Coverage()
  #cameraKey = ''

  constructor(readonly world: SimWorld) {}

  observe(frame: number): TruthFrame {
    const { world } = this
    const pose = world.cameraAt(frame)
    const matrix = viewProjection(threeCamera(pose))
    this.#placeStill(JSON.stringify(pose), matrix)
    world.pose(frame)
    const people = world.people.map((person, index) => this.#drawPerson(person, index, frame, matrix))
    const machines = world.machines.map((model, index) =>
      drawMachine(model, world.people.length + index, matrix),
    )
    this.#coverage.begin()
    for (const { runs } of [...people, ...machines]) {
      for (const run of runs) this.#coverage.add(run.mesh, run.firstIndex, run.indexCount, run.code)
    }
    const seen = this.#coverage.seen()
    return this.#report(frame, matrix, people, machines, seen)
  }

  #placeStill(key: string, matrix: Matrix4): void {
    if (key === this.#cameraKey) return
    this.#cameraKey = key
    this.#coverage = new Coverage()
    for (const mesh of this.world.site.meshes) {
      if (isMesh(mesh) && mesh.name !== 'mesh') this.#coverage.addStill(clipMeshOf(mesh.geometry, matrix))
    }
  }

  #drawPerson(person: PersonModel, index: number, frame: number, matrix: Matrix4): Drawn {
    const mesh: ClipMesh = { clip: toClip(person.body.position, matrix), index: person.body.index }
    const carries = this.world.personAt(person, frame).carries
    const runs = person.body.parts
      .filter(({ part }) => part !== 'carton' || carries)
      .map(({ part, firstIndex, indexCount }) => ({
        mesh,
        firstIndex,
        indexCount,
        code: codeOf(index, part),
      }))
    return { runs }
  }

  #report(
    frame: number,
    matrix: Matrix4,
    people: readonly Drawn[],
    machines: readonly Drawn[],
    seen: ReadonlyMap<number, Seen>,
  ): TruthFrame {
    const { world } = this
    const faults = faultsAt(world.scenario, frame)
    const blind = faults.some(({ kind }) => kind === 'covered' || kind === 'black' || kind === 'frozen')
    const objects: TruthObject[] = []
    const ignore: TruthFrame['ignore'][number][] = []
    const reports: TruthPerson[] = []
    world.people.forEach((person, index) => {
      const drawn = people[index]?.runs ?? []
      const state = world.personAt(person, frame)
      const { id } = person.spec
      const of = (...parts: PersonPart[]): typeof drawn =>
        drawn.filter(({ code }) => parts.some((part) => code === codeOf(index, part)))
      const onHead: PersonPart[] = state.helmet === 'in_hand' ? ['head'] : ['head', 'headgear']
      const head = objectOf(`${id}/head`, state.helmet === 'worn' ? 'helmet' : 'head', of(...onHead), seen)
      const vest = person.body.look.vest !== 'none'
      for (const object of [
        objectOf(id, 'person', of('body', 'torso', ...onHead), seen),
        head,
        objectOf(`${id}/torso`, vest ? 'vest' : 'no_vest', of('torso'), seen),
      ])
        if (object !== undefined) objects.push(object)
      if (state.helmet === 'in_hand') {
        const carried = objectOf(`${id}/helmet`, 'helmet', of('headgear'), seen)
        if (carried !== undefined && carried.visible > 0)
          ignore.push({ id: carried.id, what: 'helmet_in_hand', box: carried.box })
      }
      const headSeen =
        head?.visibleBox !== null &&
        head !== undefined &&
        head.visible >= headVisibleShare &&
        head.box[3] - head.box[1] >= headVisiblePx
      reports.push({
        id,
        helmet: state.helmet,
        observed: headSeen && !blind ? state.helmet : 'not_visible',
        vest,
        atM: [round(state.x, 100), round(state.z, 100)],
        footPx: groundPx(matrix, state.x, state.z, state.heightM),
        zones: zonesAt(world, state.x, state.z),
        near: world.machines
          .filter(
            (model) =>
              model.spec.running &&
              model.spec.id !== person.spec.rides &&
              distanceToMachineM(world, model, frame, state.x, state.z) < model.spec.nearM,
          )
          .map(({ spec }) => spec.id),
      })
    })
    world.machines.forEach(({ spec }, index) => {
      const object = objectOf(spec.id, machineClass[spec.kind], machines[index]?.runs ?? [], seen)
      if (object !== undefined) objects.push(object)
    })
    const frozen = faults.find(({ kind }) => kind === 'frozen')
    return {
      frame,
      faults: faults.map(({ kind }) => kind),
      ...(frozen === undefined ? {} : { showsFrame: Math.max(0, firstFrameOf(frozen.fromS) - 1) }),
      objects,
      people: reports,
      machines: world.machines.map((model) => {
        const { x, z } = world.machineAt(model, frame)
        return {
          id: model.spec.id,
          kind: model.spec.kind,
          atM: [round(x, 100), round(z, 100)],
          zones: zonesAt(world, x, z),
        }
      }),
      ignore,
    }
  }
}

/** The first frame at or after a time. */
export function firstFrameOf(timeS: number): number {
  return Math.ceil(timeS * 25 - 1e-9)
}

function drawMachine(model: MachineModel, index: number, matrix: Matrix4): Drawn {
  const runs: Drawn['runs'][number][] = []
  model.machine.group.traverse((object) => {
    if (!isMesh(object)) return
    const mesh = clipMeshOf(object.geometry, matrix.clone().multiply(object.matrixWorld))
    runs.push({ mesh, firstIndex: 0, indexCount: mesh.index.length, code: codeOf(index, 'body') })
  })
  return { runs }
}

function codeOf(objectIndex: number, part: PersonPart): number {
  return objectIndex * codesPerObject + personParts.indexOf(part) + 1
}

/** Undefined if nothing of it falls on the picture. */
function objectOf(
  id: string,
  className: ClassName,
  runs: Drawn['runs'],
  seen: ReadonlyMap<number, Seen>,
): TruthObject | undefined {
  const whole = boundsOf(runs)
  const box: TruthBox = [
    round(Math.max(0, whole.x1)),
    round(Math.max(0, whole.y1)),
    round(Math.min(pictureWidthPx, whole.x2)),
    round(Math.min(pictureHeightPx, whole.y2)),
  ]
  if (!(box[2] - box[0] >= leastBoxPx && box[3] - box[1] >= leastBoxPx)) return undefined
  const found = [...new Set(runs.map(({ code }) => code))]
    .map((code) => seen.get(code))
    .filter((part) => part !== undefined)
  const cells = found.reduce((sum, part) => sum + part.cells, 0)
  const total = cells === 0 ? 0 : outlineCells(runs, whole)
  const visibleBox: TruthBox | null =
    cells === 0
      ? null
      : [
          Math.max(box[0], Math.min(...found.map(({ x1 }) => x1))),
          Math.max(box[1], Math.min(...found.map(({ y1 }) => y1))),
          Math.min(box[2], Math.max(...found.map(({ x2 }) => x2))),
          Math.min(box[3], Math.max(...found.map(({ y2 }) => y2))),
        ]
  return {
    id,
    class: className,
    box,
    visibleBox,
    visible: total === 0 ? 0 : round(Math.min(1, cells / total), 100),
  }
}

function boundsOf(runs: readonly IndexRun[]): Bounds {
  const bounds: Bounds = { x1: Infinity, y1: Infinity, x2: -Infinity, y2: -Infinity }
  for (const { mesh, firstIndex, indexCount } of runs) {
    visitTriangles(mesh, firstIndex, indexCount, (...corners) => {
      for (const [x, y] of corners) {
        bounds.x1 = Math.min(bounds.x1, x)
        bounds.y1 = Math.min(bounds.y1, y)
        bounds.x2 = Math.max(bounds.x2, x)
        bounds.y2 = Math.max(bounds.y2, y)
      }
    })
  }
  return bounds
}

/** A ground point on the picture; far outside if it is behind the camera. */
export function groundPx(matrix: Matrix4, x: number, z: number, y = 0): [number, number] {
  const ndc = new Vector3(x, y, z).applyMatrix4(matrix)
  return [round(((ndc.x + 1) / 2) * pictureWidthPx), round(((1 - ndc.y) / 2) * pictureHeightPx)]
}

function round(value: number, per = 10): number {
  return Math.round(value * per) / per
}
