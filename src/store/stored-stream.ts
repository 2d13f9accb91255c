import type { Log } from '../lifecycle/log.js'
import type { StreamedResult } from './record.js'
import { StoreFile } from './store-file.js'
import { storeTroubleOf } from './store-trouble.js'

/** Nobody has asked for so long: the file may be another one by the next time. */
const closeAfterMs = 5_000

/** The past of the stream, read by another process than the one that writes it. */
export class StoredStream {
  #file: StoreFile | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    readonly path: string,
    readonly log: Log,
  ) {}

  /** @returns a place in the stream of an earlier run as a position of now; undefined where nothing is known of that run. */
  placeOf(epoch: string, position: number): number | undefined {
    return this.#read((file) => file.placeOf(epoch, position))
  }

  /** @returns the place before the first result from a time on; undefined where there is none. */
  placeAt(timeMs: number): number | undefined {
    return this.#read((file) => file.placeAt(timeMs))
  }

  /** Oldest first; none where it cannot be read. */
  read(after: number, below: number, limit: number): readonly StreamedResult[] {
    return this.#read((file) => file.stream(after, below, limit)) ?? []
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#file?.close()
    this.#file = undefined
  }

  #read<T>(work: (file: StoreFile) => T): T | undefined {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.close(), closeAfterMs).unref()
    try {
      if (this.#file?.isReplaced) this.#file.close()
      if (!this.#file?.isOpen) this.#file = StoreFile.openToRead(this.path)
      return this.#file && work(this.#file)
    } catch (error) {
      this.close()
      this.log.warn({ reason: storeTroubleOf(error, this.path) }, 'the past of the stream cannot be read')
      return undefined
    }
  }
}
