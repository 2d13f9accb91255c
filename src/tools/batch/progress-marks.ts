import { z } from 'zod'

/** What of the files is done, as it is kept: by number of file, from 0. */
export const marksSchema = z.strictObject({
  /** All files before this one are done. */
  next: z.number().int().min(0),
  /** Files behind it that are done as well. */
  done: z.array(z.number().int().min(0)),
  /** Videos under way, with the frames that are done. */
  open: z.array(z.tuple([z.number().int().min(0), z.number().int().min(1)])),
})
export type Marks = Readonly<z.infer<typeof marksSchema>>

/** Which files are done, and how far the open ones are. Only files near each other are open, so that little is held. */
export class ProgressMarks {
  #next: number
  readonly #done: Set<number>
  readonly #open: Map<number, number>

  constructor({ next, done, open }: Marks = { next: 0, done: [], open: [] }) {
    this.#next = next
    this.#done = new Set(done)
    this.#open = new Map(open)
  }

  /** The first file that is not done. */
  get next(): number {
    return this.#next
  }

  get filesDone(): number {
    return this.#next + this.#done.size
  }

  isDone(file: number): boolean {
    return file < this.#next || this.#done.has(file)
  }

  /** Frames of a video that are done, from its first. */
  framesDone(file: number): number {
    return this.#open.get(file) ?? 0
  }

  frameDone(file: number, frame: number): void {
    this.#open.set(file, frame)
  }

  /** Idempotent. */
  fileDone(file: number): void {
    if (this.isDone(file)) return
    this.#open.delete(file)
    this.#done.add(file)
    while (this.#done.delete(this.#next)) this.#next += 1
  }

  /** As it is now. */
  marks(): Marks {
    return { next: this.#next, done: [...this.#done].sort((a, b) => a - b), open: [...this.#open] }
  }
}
