import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../lifecycle/log.js'

const baseName = 'trace.json'
const numbered = /^trace\.json\.(\d{1,9})$/
/** More than this is not kept for a disk that does not take it. */
const maxWaitingBytes = 16 * 1024 ** 2

/**
 * Files `trace.json.<number>` in one folder, each a whole JSON array. Numbers go on after those that are there; the oldest files
 * go when all together have more than `maxBytes`. Nothing else in the folder is touched.
 */
export class TraceFiles {
  /** What clients are told; the folder is not their business. */
  readonly name = baseName
  #next: number | undefined
  #waitingBytes = 0
  #last: Promise<void> = Promise.resolve()

  constructor(
    readonly dir: string,
    readonly maxBytes: number,
    readonly log: Log,
  ) {}

  /** Never throws; what cannot be written is lost, with a line in the log. @param entries - of an array, without its brackets. */
  save(entries: string): void {
    const text = `[${entries}]\n`
    const bytes = Buffer.byteLength(text)
    if (this.#waitingBytes + bytes > maxWaitingBytes) {
      this.log.warn({ bytes }, 'traces are lost: the disk does not keep up')
      return
    }
    this.#waitingBytes += bytes
    this.#last = this.#last
      .then(() => this.#write(text))
      .catch((error: unknown) => this.log.warn({ err: error, dir: this.dir }, 'traces are lost'))
      .finally(() => (this.#waitingBytes -= bytes))
  }

  /** Resolves when all is written. */
  written(): Promise<void> {
    return this.#last
  }

  async #write(text: string): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 })
    this.#next ??= Math.max(-1, ...(await this.#numbers())) + 1
    const number = this.#next++
    await writeFile(join(this.dir, `${baseName}.${number}`), text, { mode: 0o600, flag: 'wx' })
    await this.#prune()
  }

  /** Newest first; the newest stays, however large it is. */
  async #prune(): Promise<void> {
    let bytes = 0
    for (const [index, number] of (await this.#numbers()).entries()) {
      const path = join(this.dir, `${baseName}.${number}`)
      bytes += (await stat(path)).size
      if (index > 0 && bytes > this.maxBytes) await rm(path, { force: true })
    }
  }

  /** Of the files that are there, highest first. */
  async #numbers(): Promise<number[]> {
    const names = await readdir(this.dir)
    return names
      .flatMap((name) => numbered.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a)
  }
}
