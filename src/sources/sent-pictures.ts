import type { DecoderLine } from './decoder-log.js'
import { type SentPicture, type SetAspect, type ToldAspect, unbelievedAspect } from './pixel-aspect.js'

/** How large pictures are, by themselves and their pixels. */
export type SizeLine = Extract<DecoderLine, { kind: 'size' }>

/** What a decoder said last about the pictures that it gets. */
export class SentPictures {
  #now: SentPicture | undefined
  #pixelAspect: number | undefined
  #isTold = false

  /** @param unbelieved - told once, why pixels are taken for square though the stream says something else. */
  constructor(
    readonly camera: SetAspect,
    readonly unbelieved: (why: string) => void,
  ) {}

  /** `undefined` until their size is known. */
  get now(): SentPicture | undefined {
    return this.#now
  }

  size({ source, aspect }: SizeLine): void {
    this.#now = source
    this.#pixelAspect = undefined
    this.#shape(source, aspect)
  }

  /** @returns whether their pixels have another shape than those before, whose size was the same. */
  differ(aspect: ToldAspect): boolean {
    const before = this.#pixelAspect
    this.#pixelAspect = aspect.pixelAspect
    return before !== undefined && before !== aspect.pixelAspect
  }

  /** Pictures of the size that is known have pixels of this shape. */
  follow(aspect: ToldAspect): void {
    if (this.#now !== undefined) this.#shape(this.#now, aspect)
  }

  /** @param said - what the stream says, in the words of its decoder. */
  refuse(said: string): void {
    const { sampleAspectRatio, displayAspectRatio } = this.camera
    if (sampleAspectRatio === undefined && displayAspectRatio === undefined) this.#tell(said)
  }

  #shape(sent: SentPicture, { pixelAspect, isUnbelieved }: ToldAspect): void {
    this.#now = { ...sent, pixelAspect }
    if (isUnbelieved) this.#tell()
  }

  #tell(said?: string): void {
    if (this.#isTold) return
    this.#isTold = true
    this.unbelieved(unbelievedAspect(this.camera, this.#now, said))
  }
}
