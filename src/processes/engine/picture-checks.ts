import { picturePlane } from '../../coverage/picture/picture-plane.js'
import { PictureWatch } from '../../coverage/picture/picture-watch.js'
import type { PictureVerdict } from '../../vision/coverage.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'
import { FreezeWatch } from './freeze-watch.js'
import { pictureIn } from './refit.js'

/** Smaller pictures have no neighbours to compare a pixel with. */
const leastPx = 3

/** What the pictures of one camera say of themselves: that they stand still, and, once a second, what they show. */
export class PictureChecks {
  readonly freeze: FreezeWatch
  readonly #watch = new PictureWatch()

  /** @param frozenAfterMs - see `FreezeWatch`. */
  constructor(frozenAfterMs: number) {
    this.freeze = new FreezeWatch(frozenAfterMs)
  }

  /** Borrows the frame for the call. @returns true once for each freeze. */
  frame(frame: Frame, format: FrameFormat): boolean {
    // What damage shows is not the scene.
    if (frame.quality === 'ok' && this.#watch.wants(frame.arrivedMs)) this.#look(frame, format)
    return this.freeze.frame(frame)
  }

  /** Pictures have another size from the next one on. */
  sizeChanges(): void {
    this.freeze.sizeChanges()
    this.#watch.sizeChanges()
  }

  /** By now. A black picture that never changes is told for what it shows. */
  get verdict(): PictureVerdict {
    const seen = this.#watch.verdict
    if (seen.trouble === 'dark' || seen.trouble === 'covered') return seen
    const { frozen, isInDoubt, sinceMs, thawedMs } = this.freeze
    if (frozen) return { trouble: 'frozen_picture', sinceMs, doubtMs: null }
    const doubts = [...(isInDoubt ? [sinceMs] : []), ...(seen.doubtMs === null ? [] : [seen.doubtMs])]
    return {
      trouble: seen.trouble,
      sinceMs: Math.max(seen.sinceMs, thawedMs),
      doubtMs: doubts.length === 0 ? null : Math.min(...doubts),
    }
  }

  #look(frame: Frame, format: FrameFormat): void {
    const { padXPx, padYPx } = frame.letterbox
    const area = { xPx: padXPx, yPx: padYPx, ...pictureIn(frame, format) }
    if (area.widthPx < leastPx || area.heightPx < leastPx) return
    this.#watch.look(picturePlane(frame.rgbHwc, format.input.widthPx, area), frame.arrivedMs)
  }
}
