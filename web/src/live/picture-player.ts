import type { DetectionsMessage } from '../api/types.js'
import type { PictureMessage } from '../../../clients/typescript/src/index.js'
import { countLabels, type LabelCount } from '../state/sightings.js'
import { overlay } from '../state/overlay.js'
import { monotonicMs } from '../state/service-clock.js'
import { Store } from '../state/store.js'
import { PicturePace } from './picture-pace.js'
import { draw, type Shown } from './draw.js'

/**
 * Shows the live picture of one camera on any number of canvases.
 *
 * A picture waits for the detections of its own frame, so boxes always lie on what they were found in. There is no backlog: while
 * one picture is being decoded only the newest of the others is kept.
 */
export class PicturePlayer {
  /** What is in the picture that is shown. */
  readonly seen = new Store<readonly LabelCount[]>([])
  /** Whether the camera sends larger pictures than the model saw, which are those shown. */
  readonly isScaled = new Store(false)
  readonly #canvases = new Set<HTMLCanvasElement>()
  readonly #firstListeners = new Set<() => void>()
  /** How old the picture is that is shown, and how often there is another. */
  readonly pace = new PicturePace()
  readonly #forgetOverlay = overlay.subscribe(() => this.#paint())
  #arrived: PictureMessage | undefined
  #next: Readonly<{ picture: PictureMessage; detections: DetectionsMessage['detections'] }> | undefined
  #shown: Shown | undefined
  #decoding = false
  #disposed = false
  #frameRequest = 0

  get hasPicture(): boolean {
    return this.#shown !== undefined
  }

  /** When the picture that is shown was taken: wall time of the service. */
  get capturedAtMs(): number | undefined {
    return this.#shown && Date.parse(this.#shown.header.capturedAt)
  }

  /** Draws on the canvas from now on, beginning with the picture at hand. @returns what ends it. */
  attach(canvas: HTMLCanvasElement): () => void {
    this.#canvases.add(canvas)
    const observer = new ResizeObserver(() => this.#fit(canvas))
    observer.observe(canvas)
    this.#fit(canvas)
    return () => {
      observer.disconnect()
      this.#canvases.delete(canvas)
    }
  }

  /** Calls the listener when the first picture is shown. @returns what takes the listener away. */
  onFirst(listener: () => void): () => void {
    this.#firstListeners.add(listener)
    return () => this.#firstListeners.delete(listener)
  }

  /** No pictures were asked for, for a while. */
  paused(): void {
    this.pace.paused()
  }

  picture(picture: PictureMessage): void {
    this.#arrived = picture
  }

  detections(message: DetectionsMessage): void {
    const picture = this.#arrived
    if (picture?.header.seq !== message.seq) return
    this.#arrived = undefined
    this.#next = { picture, detections: message.detections }
    if (!this.#decoding) void this.#decode()
  }

  dispose(): void {
    this.#disposed = true
    this.#forgetOverlay()
    this.#shown?.bitmap.close()
    this.#shown = this.#next = this.#arrived = undefined
    cancelAnimationFrame(this.#frameRequest)
  }

  async #decode(): Promise<void> {
    this.#decoding = true
    while (this.#next !== undefined) {
      const { picture, detections } = this.#next
      this.#next = undefined
      // A damaged picture is skipped; the next one is on its way.
      const bitmap = await createImageBitmap(new Blob([picture.jpeg])).catch(() => undefined)
      if (bitmap !== undefined) this.#show({ bitmap, header: picture.header, detections })
    }
    this.#decoding = false
  }

  #show(shown: Shown): void {
    if (this.#disposed) return shown.bitmap.close()
    const first = this.#shown === undefined
    this.#shown?.bitmap.close()
    this.#shown = shown
    this.pace.shown(Date.parse(shown.header.capturedAt), monotonicMs())
    this.seen.set(countLabels(shown.detections))
    const { widthPx, heightPx, sourceWidthPx, sourceHeightPx } = shown.header
    this.isScaled.set(sourceWidthPx > widthPx || sourceHeightPx > heightPx)
    cancelAnimationFrame(this.#frameRequest)
    this.#frameRequest = requestAnimationFrame(() => this.#paint())
    if (first) for (const listener of this.#firstListeners) listener()
  }

  #paint(): void {
    for (const canvas of this.#canvases) this.#paintOn(canvas)
  }

  #paintOn(canvas: HTMLCanvasElement): void {
    if (this.#shown === undefined || canvas.width === 0) return
    draw(canvas, this.#shown, window.devicePixelRatio, overlay.value)
    canvas.dataset['seq'] = String(this.#shown.header.seq)
  }

  #fit(canvas: HTMLCanvasElement): void {
    const width = Math.round(canvas.clientWidth * window.devicePixelRatio)
    const height = Math.round(canvas.clientHeight * window.devicePixelRatio)
    if (width === 0 || (canvas.width === width && canvas.height === height)) return
    canvas.width = width
    canvas.height = height
    this.#paintOn(canvas)
  }
}
