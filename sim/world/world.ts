import { Group, PerspectiveCamera, Vector3 } from 'three'
import { PersonMesh } from '../body/person-mesh.js'
import { skeletonOf } from '../body/skeleton.js'
import { machineBuilders } from '../machines/index.js'
import { type Machine } from '../machines/machine.js'
import { palette } from '../scenario/palette.js'
import {
  type CameraSpec,
  type FaultSpec,
  type MachineSpec,
  type PersonSpec,
  type Scenario,
  type ZoneSpec,
} from '../scenario/schema.js'
import { siteBuilders } from '../sites/index.js'
import { type Site } from '../sites/site.js'
import { castOf, habitOf, lookOf } from './cast.js'
import { frameCountOf, pictureHeightPx, pictureWidthPx, secondsOf } from './clock.js'
import { smoothstep } from './easing.js'
import { type MachineMotion, type MachineState, compileMachineMotion } from './machine-motion.js'
import { type Motion, type PersonState, compileMotion } from './motion.js'
import { ridingMotion } from './riding.js'
import { type Habit, poseOf } from './pose.js'

export interface PersonModel {
  readonly spec: PersonSpec
  readonly motion: Motion
  readonly habit: Habit
  readonly body: PersonMesh
}

export interface MachineModel {
  readonly spec: MachineSpec
  readonly motion: MachineMotion
  readonly machine: Machine
}

/** Where the camera stands in one frame. */
export interface CameraPose {
  readonly positionM: readonly [number, number, number]
  readonly lookAtM: readonly [number, number, number]
  readonly rollRad: number
  readonly fovDeg: number
  /** 0 where it was mounted, above where a `moved` fault has knocked it. */
  readonly movedShare: number
}

/**
 * A scenario as geometry: the same code builds it for the truth (Node) and for the picture (browser). Every state is a
 * pure function of scenario, seed and frame index; nothing remembers the frame before.
 */
export class SimWorld {
  readonly site: Site
  readonly people: readonly PersonModel[]
  readonly machines: readonly MachineModel[]
  readonly zones: readonly ZoneSpec[]
  readonly frameCount: number
  /** Everything that moves. */
  readonly dynamic = new Group()

  constructor(readonly scenario: Scenario) {
    this.site = siteBuilders[scenario.site]()
    this.zones = scenario.zones ?? this.site.zones
    this.frameCount = frameCountOf(scenario.durationS)
    this.machines = scenario.machines.map((spec) => ({
      spec,
      motion: compileMachineMotion(spec),
      machine: machineBuilders[spec.kind](spec.color === undefined ? undefined : palette.cloth[spec.color]),
    }))
    this.people = castOf(scenario).map((spec) => ({
      spec,
      motion: this.#motionOf(spec),
      habit: habitOf(scenario.seed, spec.id),
      body: new PersonMesh(lookOf(scenario.seed, spec), spec.headgear),
    }))
    this.dynamic.add(
      ...this.people.map(({ body }) => body.mesh),
      ...this.machines.map(({ machine }) => machine.group),
    )
  }

  #motionOf(spec: PersonSpec): Motion {
    const ridden = this.machines.find(({ spec: { id } }) => id === spec.rides)
    return ridden === undefined ? compileMotion(spec) : ridingMotion(spec, ridden.motion)
  }

  /** Writes the geometry of one frame. */
  pose(frame: number): void {
    const timeS = secondsOf(frame)
    for (const person of this.people) {
      const state = person.motion.at(timeS)
      person.body.pose(skeletonOf(poseOf(state, timeS, person.habit), person.body.measures, state), state)
    }
    for (const { spec, motion, machine } of this.machines) {
      const state = motion.at(timeS)
      machine.group.position.set(state.x, 0, state.z)
      machine.group.rotation.y = state.headingRad
      machine.pose({ timeS, drivenM: state.drivenM, liftM: state.liftM, running: spec.running })
    }
    this.dynamic.updateMatrixWorld(true)
  }

  personAt(person: PersonModel, frame: number): PersonState {
    return person.motion.at(secondsOf(frame))
  }

  machineAt(model: MachineModel, frame: number): MachineState {
    return model.motion.at(secondsOf(frame))
  }

  cameraAt(frame: number): CameraPose {
    return movedCamera(this.scenario.camera ?? this.site.camera, this.scenario.faults, secondsOf(frame))
  }
}

/** A `moved` fault knocks the camera aside within a fifth of a second, and back when it ends before the clip does. */
function movedCamera(camera: CameraSpec, faults: readonly FaultSpec[], timeS: number): CameraPose {
  let share = 0
  for (const fault of faults) {
    if (fault.kind !== 'moved') continue
    share +=
      fault.strength *
      smoothstep(fault.fromS - 1e-6, fault.fromS + 0.2, timeS) *
      (1 - smoothstep(fault.toS - 0.2, fault.toS, timeS))
  }
  const position = new Vector3(...camera.positionM)
  const gaze = new Vector3(...camera.lookAtM).sub(position)
  gaze.applyAxisAngle(new Vector3(0, 1, 0), 0.32 * share)
  gaze.y += 0.22 * share * gaze.length()
  const lookAt = position.clone().add(gaze)
  return {
    positionM: camera.positionM,
    lookAtM: [lookAt.x, lookAt.y, lookAt.z],
    rollRad: 0.14 * share,
    fovDeg: camera.fovDeg,
    movedShare: share,
  }
}

export const cameraNearM = 0.3
export const cameraFarM = 160

/** A ready three.js camera for a pose, matrices up to date. */
export function threeCamera(pose: CameraPose): PerspectiveCamera {
  const camera = new PerspectiveCamera(pose.fovDeg, pictureWidthPx / pictureHeightPx, cameraNearM, cameraFarM)
  camera.position.set(...pose.positionM)
  camera.lookAt(...pose.lookAtM)
  camera.rotateZ(pose.rollRad)
  camera.updateMatrixWorld(true)
  return camera
}
