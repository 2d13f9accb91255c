import { open, type FileHandle } from 'node:fs/promises'
import { byTrueName } from '../../../lifecycle/system-limit.js'
import { BatchStateError } from '../batch-errors.js'

/** A text file that grows by lines, and of which only so many bytes count as are on the disk for sure. */
export class LineFile {
  #file: FileHandle | undefined
  #lines: string[] = []
  #waitingBytes = 0
  #bytes = 0

  /** @param head - first line of the file, where it has one. */
  constructor(
    readonly path: string,
    readonly head = '',
  ) {}

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** @param bytes - that count; the rest is cut off. @throws BatchStateError where the file is shorter; SystemLimitError */
  async open(bytes: number): Promise<void> {
    try {
      this.#file = await open(this.path, bytes === 0 ? 'w' : 'r+')
      const { size } = await this.#file.stat()
      if (size < bytes) throw shorter(this.path)
      if (size > bytes) await this.#file.truncate(bytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw shorter(this.path)
      throw byTrueName(`${this.path} cannot be written`, error)
    }
    this.#bytes = bytes
    if (bytes === 0 && this.head !== '') this.add(this.head)
  }

  add(line: string): void {
    this.#lines.push(line)
    this.#waitingBytes += Buffer.byteLength(line) + 1
  }

  /** Writes what waits, to the disk. @returns the bytes that count from now on. @throws SystemLimitError; then none of it counts */
  async flush(): Promise<number> {
    const file = this.#file
    if (file === undefined || this.#lines.length === 0) return this.#bytes
    const text = Buffer.from(`${this.#lines.join('\n')}\n`)
    this.#lines = []
    this.#waitingBytes = 0
    try {
      await writeAll(file, text, this.#bytes)
      await file.datasync()
    } catch (error) {
      await file.truncate(this.#bytes).catch(() => undefined)
      throw byTrueName(`${this.path} cannot be written`, error)
    }
    this.#bytes += text.length
    return this.#bytes
  }

  /** Idempotent, never rejects. */
  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close().catch(() => undefined)
  }
}

/** A write may take a part alone, on a disk that is nearly full. */
async function writeAll(file: FileHandle, text: Buffer, at: number): Promise<void> {
  for (let done = 0; done < text.length;) {
    const { bytesWritten } = await file.write(text, done, text.length - done, at + done)
    done += bytesWritten
  }
}

function shorter(path: string): BatchStateError {
  return new BatchStateError(
    `${path} is shorter than the run that wrote it has counted: it was changed, or is gone`,
    'Begin anew with --restart.',
  )
}
