import type { PictureTrouble, PictureVerdict } from '../../vision/coverage.js'
import type { PicturePlane } from './picture-plane.js'
import { planeFigures, type PlaneFigures } from './plane-figures.js'
import { compare, echo, learn, middleOf, sceneOf, type Scene } from './scene.js'

/** What checks of the picture find; that it is frozen is found otherwise. */
type Finding = Exclude<PictureTrouble, 'frozen_picture'>

/** A picture is looked at no more often. */
export const checkEveryMs = 1_000
/** Looks after each other until a finding is one. A truck that stops before the camera is no other scene yet. */
const surely: Readonly<Record<Finding, number>> = { dark: 2, covered: 2, blurred: 3, moved: 5 }
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
const dark = { brightMost: 50, mean: 25 } as const
/** Of a picture without the noise and the lamps that darkness leaves, and of the scene before that was no dark one. */
const black = { contrast: 0.3, detail: 0.1, litMean: 40 } as const
/** What is brightest in a dark picture is no brighter than that in the scene, see `echo`: it is of something else. */
const echoBelow = 0.25
/** Brightness deviates by less in a picture of nothing: the emptiest scene of the clips has 9. */
const nothingContrast = 2.5
/** Shares of the parts of a scene, see `SceneLook`. Clips: a scene shows the same in at least 0.5 of them, also blurred; moved or covered at most 0.28. */
const anotherBelow = 0.35
const sameFrom = 0.45
const coveredFrom = 0.3
/** What is left of the detail. Clips: at least 0.65 in the light of the scene, 0.47 with a blur of two pixels. */
const blurredBelow = 0.55
const coveredDetailBelow = 0.4

/**
 * Looks at the pictures of one camera once a second, beside a scene that it learns itself. Pure but for what it has learnt: times are those of
 * the pictures.
 */
export class PictureWatch {
  #scene: Scene | undefined
  /** Pictures that it is to be known from. */
  #first: Scene[] = []
  #litMean = 0
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
    const isStill = this.#before !== undefined && compare(this.#before, picture).same >= sameFrom
    this.#before = picture
    this.#judge(found, isStill, atMs)
    if (this.#trouble === 'moved') this.#adopt(picture, found, isStill, atMs)
    else if (found === null && this.#departMs === undefined) this.#learn(picture, figures)
  }

  #finding(picture: Scene, figures: PlaneFigures): Finding | null {
    const { brightMost, meanLuma, contrast } = figures
    const scene = this.#scene
    if (brightMost < dark.brightMost && meanLuma < dark.mean)
      return scene !== undefined && this.#isCover(scene, picture, figures) ? 'covered' : 'dark'
    if (contrast < nothingContrast) return 'covered'
    if (scene === undefined) return null
    const look = compare(scene, picture)
    if (look.same <= anotherBelow)
      return look.emptied >= coveredFrom || look.detail < coveredDetailBelow || this.#lost(scene, figures)
        ? 'covered'
        : 'moved'
    return look.same >= sameFrom && look.detail < blurredBelow && look.sharpness < blurredBelow
      ? 'blurred'
      : null
  }

  /** Of a dark picture: whether something lies over the lens. */
  #isCover(scene: Scene, picture: Scene, { contrast, detail }: PlaneFigures): boolean {
    if (contrast < black.contrast && detail < black.detail) return this.#litMean >= black.litMean
    return echo(scene, picture) < echoBelow
  }

  #lost(scene: Scene, { detail }: PlaneFigures): boolean {
    const known = scene.detail.reduce((sum, value) => sum + value, 0) / scene.detail.length
    return detail < known * coveredDetailBelow
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
      this.sizeChanges()
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

  #learn(picture: Scene, { meanLuma }: PlaneFigures): void {
    if (this.#scene !== undefined) {
      learn(this.#scene, picture, learnShare)
      this.#litMean += (meanLuma - this.#litMean) * learnShare
      return
    }
    this.#first.push(picture)
    if (this.#first.length < sceneOfLooks) return
    const scene = middleOf(this.#first)
    if (this.#first.filter((one) => compare(scene, one).same >= sameFrom).length >= sceneAlike) {
      this.#scene = scene
      this.#litMean = meanLuma
      this.#first = []
    } else this.#first.splice(0, looksLetGo)
  }
}
