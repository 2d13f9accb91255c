/** A video of an input, as the decoder tells it. */
export type Video = Readonly<{
  index: number
  codec: string
  size: string
  isCover: boolean
  /** Pictures a second, where the stream says so. */
  fps?: number
}>

/** The videos of an input, told one after another, and which of them is shown. */
export class VideoTracks {
  #all: readonly Video[] = []
  #isComplete = false

  /** @param track - the one that is wanted, counted from 1. */
  constructor(readonly track: number) {}

  /** Those that come after {@link complete} are of the output. Of several programs each tells its own, also what another one has told. */
  add(video: Video): void {
    if (this.#isComplete || this.#all.some(({ index }) => index === video.index)) return
    this.#all = [...this.#all, video].toSorted((a, b) => a.index - b.index)
  }

  get #videos(): readonly Video[] {
    return this.#all.filter(({ isCover }) => !isCover)
  }

  complete(): void {
    this.#isComplete = true
  }

  /** Codec of the one that is shown, by what has been told so far. */
  get codec(): string | undefined {
    return this.#videos[this.track - 1]?.codec
  }

  /** Pictures a second of the same, where it says so. */
  get fps(): number | undefined {
    return this.#videos[this.track - 1]?.fps
  }

  /** For people; undefined where there is nothing to choose. */
  get shown(): string | undefined {
    const video = this.#videos[this.track - 1]
    if (video === undefined || !this.#isComplete || this.#videos.length < 2) return undefined
    return `video ${this.track} of ${this.#videos.length}: ${nameOf(video)}`
  }

  /** Those that are not shown, for people. */
  get others(): readonly string[] {
    return this.#videos.flatMap((video, index) =>
      index === this.track - 1 ? [] : [`video ${index + 1}: ${nameOf(video)}`],
    )
  }

  /** Why the wanted one is not there; undefined where none was told at all. */
  get lacking(): string | undefined {
    const count = this.#videos.length
    if (count >= this.track) return undefined
    if (count === 0)
      return this.#all.length > 0 ? 'there is no video in the file but a cover picture' : undefined
    return `videoTrack is ${this.track}, and there ${count === 1 ? 'is one video' : `are ${count} videos`}`
  }
}

function nameOf({ codec, size }: Video): string {
  return size === '' ? codec : `${codec}, ${size}`
}
