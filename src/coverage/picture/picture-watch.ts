import type { PictureTrouble, PictureVerdict } from '../../vision/coverage.js'
import type { PicturePlane } from './picture-plane.js'
import { emptyShare, planeFigures, type PlaneFigures } from './plane-figures.js'
import { compare, echo, learn, likeness, middleOf, sceneOf, type Scene } from './scene.js'

/** What checks of the picture find; that it is frozen is found otherwise. */
type Finding = Exclude<PictureTrouble, 'frozen_picture'>

/** A picture is looked at no more often. */
export const checkEveryMs = 1_000
/** Looks after each other until a finding is one. A truck that stops before the camera is no other scene yet. */
const surely: Readonly<Record<Finding, number>> = { dark: 2, covered: 4, blurred: 3, moved: 5 }
const surelyFine = 2
/** Looks of which most show the same until that is known as the scene; else some of them are let go. */
const sceneOfLooks = 9
const sceneAlike = 6
const looksLetGo = 3
/** A scene changes by and by: what stands there for a minute belongs to it. */
const learnShare = 1 / 60
/** A camera that was moved is blind to what it should see; after so long it is taken to see what it should. */
export const newSceneAfterMs = 60_000
/** A picture that never stands still so long has no scene: the camera is swung by somebody. */
const restlessAfterMs = 15_000
/** After so long without a picture what was in doubt is forgotten. */
const gapMs = 5_000

/** Brightness, 0-255, of a picture that shows nothing for want of light: of one cell in ten, and on average. */
const dark = { brightMost: 40, mean: 18 } as const
/** The same beside the usual brightness of the camera: lamps and a bright sky may be left. */
const lightGone = { ofUsual: 0.2, mean: 30 } as const
/** Of a picture without any light: what is left may be of the sensor, or of the encoder. */
const lightless = { contrast: 0.3, brightMost: 10 } as const
/** What is brightest in a dark picture is no brighter than that in the scene, see `echo`: it is of something else. */
const echoBelow = 0.6
/** A picture of nothing, whatever the scene is: share of its parts in which nothing is, or of the usual structure that is left. */
const nothing = { emptyFrom: 0.95, structureBelow: 0.01 } as const
/** Shares of the parts of a scene, see `SceneLook`. Clips: a scene shows the same in at least 0.6 of them, also blurred or a third covered; moved at most 0.1, most of it covered 0.25. */
const anotherBelow = 0.35
const sameFrom = 0.45
const coveredFrom = 0.5
/** What is left has lost so much of its light that the rest is black for want of it. */
const gloom = { brightnessBelow: 0.6, mean: 40 } as const
/** What is left of the detail. Clips: at least 0.65 in the light of the scene, 0.47 with a blur of two pixels. */
const blurredBelow = 0.55
/** Of something that lies close over the lens, not sharp and not empty; a camera that was moved shows more. */
const closeBelow = 0.2

/**
 * Looks at the pictures of one camera once a second, beside a scene that it learns itself. Pure but for what it has learnt: times are those of
 * the pictures.
 */
export class PictureWatch {
  #scene: Scene | undefined
  /** Pictures that it is to be known from. */
  #first: Scene[] = []
  /** Of sound pictures, whatever they show. */
  #usual = { meanLuma: 0, structure: 0 }
  #before: Scene | undefined
  /** What a camera that was moved shows now. */
  #next: Scene | undefined
  #lastMs = -Infinity
  #trouble: Finding | null = null
  #sinceMs = 0
  /** Something else than before is found since then. */
  #departMs: number | undefined
  #found: Finding | null = null
  #times = 0

  /** Whether a picture of that time is to be looked at. */
  wants(atMs: number): boolean {
    return atMs - this.#lastMs >= checkEveryMs
  }

  /** Pictures have another size from the next one on: detail is learnt anew. */
  sizeChanges(): void {
    this.#forget()
    this.#usual = { meanLuma: 0, structure: 0 }
  }

  #forget(): void {
    this.#scene = undefined
    this.#first = []
    this.#next = undefined
    this.#before = undefined
  }

  get verdict(): PictureVerdict {
    return { trouble: this.#trouble, sinceMs: this.#sinceMs, doubtMs: this.#departMs ?? null }
  }

  look(plane: PicturePlane, atMs: number): void {
    if (atMs - this.#lastMs > gapMs) this.#departMs = undefined
    this.#lastMs = atMs
    const picture = sceneOf(plane)
    const figures = planeFigures(plane)
    const found = this.#finding(picture, figures)
    const isStill = this.#before !== undefined && likeness(this.#before, picture) >= sameFrom
    this.#before = picture
    this.#judge(found, isStill, atMs)
    if (this.#trouble === 'moved') this.#adopt(picture, found, isStill, atMs)
    else if (found === null && this.#departMs === undefined) {
      this.#learn(picture)
      this.#getUsedTo(figures)
    }
  }

  #finding(picture: Scene, figures: PlaneFigures): Finding | null {
    const scene = this.#scene
    if (this.#isDark(figures))
      return scene !== undefined && this.#isCover(scene, picture, figures) ? 'covered' : 'dark'
    if (figures.structure < this.#usual.structure * nothing.structureBelow) return 'covered'
    if (scene === undefined) return emptyShare(figures) >= nothing.emptyFrom ? 'covered' : null
    const look = compare(scene, picture, figures)
    if (look.emptied >= coveredFrom && look.same < sameFrom) {
      const isGloomy = look.same > 0 && look.brightness < gloom.brightnessBelow
      return isGloomy && figures.meanLuma < gloom.mean ? 'dark' : 'covered'
    }
    if (look.same <= anotherBelow) return look.sharp < closeBelow ? 'covered' : 'moved'
    return look.same >= sameFrom && look.detail < blurredBelow && look.sharpness < blurredBelow
      ? 'blurred'
      : null
  }

  #isDark({ brightMost, meanLuma }: PlaneFigures): boolean {
    if (meanLuma < dark.mean && brightMost < dark.brightMost) return true
    return meanLuma < lightGone.mean && meanLuma < this.#usual.meanLuma * lightGone.ofUsual
  }

  /** Of a dark picture: whether what little it shows is of something else than the scene. Where it shows nothing, there is no light. */
  #isCover(scene: Scene, picture: Scene, { contrast, brightMost }: PlaneFigures): boolean {
    if (contrast < lightless.contrast || brightMost < lightless.brightMost) return false
    return echo(scene, picture) < echoBelow
  }

  #judge(found: Finding | null, isStill: boolean, atMs: number): void {
    if (found === this.#trouble) {
      this.#departMs = undefined
      this.#times = 0
      this.#found = found
      return
    }
    this.#departMs ??= atMs
    this.#times = found === this.#found && (found !== 'moved' || isStill) ? this.#times + 1 : 1
    this.#found = found
    if (this.#times >= (found === null ? surelyFine : surely[found])) {
      this.#trouble = found
      this.#sinceMs = this.#departMs
      this.#departMs = undefined
      this.#times = 0
    } else if (atMs - this.#departMs >= restlessAfterMs) {
      this.#departMs = undefined
      this.#forget()
    }
  }

  #adopt(picture: Scene, found: Finding | null, isStill: boolean, atMs: number): void {
    if (found !== 'moved') return
    if (this.#next === undefined || !isStill) this.#next = picture
    else learn(this.#next, picture, learnShare)
    if (atMs - this.#sinceMs < newSceneAfterMs) return
    this.#scene = this.#next
    this.#next = undefined
    this.#trouble = null
    this.#sinceMs = atMs
  }

  #getUsedTo({ meanLuma, structure }: PlaneFigures): void {
    const { meanLuma: mean, structure: usual } = this.#usual
    const share = usual === 0 ? 1 : learnShare
    this.#usual = {
      meanLuma: mean + (meanLuma - mean) * share,
      structure: usual + (structure - usual) * share,
    }
  }

  #learn(picture: Scene): void {
    if (this.#scene !== undefined) {
      learn(this.#scene, picture, learnShare)
      return
    }
    this.#first.push(picture)
    if (this.#first.length < sceneOfLooks) return
    const scene = middleOf(this.#first)
    if (this.#first.filter((one) => likeness(scene, one) >= sameFrom).length >= sceneAlike) {
      this.#scene = scene
      this.#first = []
    } else this.#first.splice(0, looksLetGo)
  }
}
