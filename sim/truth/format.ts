import { type FaultKind, type Lighting, type MachineKind, type SiteName } from '../scenario/schema.js'
import { type HelmetState } from '../world/motion.js'

/** The detector's classes, in the order of its outputs and of the data set's labels. */
export const classNames = ['helmet', 'head', 'person', 'vest', 'no_vest', 'machinery', 'vehicle'] as const
export type ClassName = (typeof classNames)[number]

/** x1, y1, x2, y2 in pixels of the 1280 x 720 picture, origin top left, one decimal. */
export type TruthBox = readonly [number, number, number, number]

/** See README.md, "What a box is". */
export interface TruthObject {
  readonly id: string
  readonly class: ClassName
  /** Bounds of the thing's whole projected geometry, hidden parts too, clipped to the picture. */
  readonly box: TruthBox
  /** Bounds of what can be seen of it, to 2 px; null if nothing can. */
  readonly visibleBox: TruthBox | null
  /** Share of its whole outline that is neither hidden nor outside the picture, 0-1. */
  readonly visible: number
}

export interface TruthPerson {
  readonly id: string
  /** How it is. */
  readonly helmet: HelmetState
  /** What a perfect observer of this picture could say. */
  readonly observed: HelmetState | 'not_visible'
  readonly vest: boolean
  /** On the ground, metres. */
  readonly atM: readonly [number, number]
  /** The same point on the picture; may be outside it. */
  readonly footPx: readonly [number, number]
  readonly zones: readonly string[]
  /** Machines that run and are nearer than their `nearM`. */
  readonly near: readonly string[]
}

export interface TruthMachine {
  readonly id: string
  readonly kind: MachineKind
  readonly atM: readonly [number, number]
  readonly zones: readonly string[]
}

export interface TruthFrame {
  readonly frame: number
  readonly faults: readonly FaultKind[]
  /** While the picture is frozen: the frame that it shows. */
  readonly showsFrame?: number
  readonly objects: readonly TruthObject[]
  readonly people: readonly TruthPerson[]
  readonly machines: readonly TruthMachine[]
  /** Things of no class that look like one: a helmet in a hand. */
  readonly ignore: readonly { readonly id: string; readonly what: 'helmet_in_hand'; readonly box: TruthBox }[]
}

export type TruthEvent = Readonly<{ fromS: number; toS: number }> &
  (
    | Readonly<{ kind: 'in_zone'; who: string; zone: string }>
    | Readonly<{ kind: 'helmet_off'; who: string; state: 'in_hand' | 'none' }>
    | Readonly<{ kind: 'near_machine'; who: string; machine: string; closestM: number }>
    | Readonly<{ kind: 'camera_fault'; fault: FaultKind }>
  )

export interface TruthZone {
  readonly id: string
  readonly polygonM: readonly (readonly [number, number])[]
  /** As the unmoved camera sees it; corners may be outside the picture. */
  readonly polygonPx: readonly (readonly [number, number])[]
}

export interface TruthHead {
  readonly format: 'gantry-sim-truth/1'
  readonly scenario: string
  readonly site: SiteName
  readonly lighting: Lighting
  readonly seed: number
  readonly fps: number
  readonly widthPx: number
  readonly heightPx: number
  readonly frameCount: number
  /** Frames are listed every this many. */
  readonly frameStride: number
  readonly zones: readonly TruthZone[]
  readonly events: readonly TruthEvent[]
}

export interface Truth extends TruthHead {
  readonly frames: readonly TruthFrame[]
}
