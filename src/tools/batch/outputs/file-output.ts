import { open, rename, rm } from 'node:fs/promises'
import { byTrueName } from '../../../lifecycle/system-limit.js'
import { writeCoco } from './coco-file.js'
import type { BatchOutput, ScoredItem } from './batch-output.js'
import { csvHead, csvLines } from './columns.js'
import { LineFile } from './line-file.js'
import { writeParquet } from './parquet-file.js'

export const fileFormats = ['jsonl', 'csv', 'coco', 'parquet'] as const
export type FileFormat = (typeof fileFormats)[number]

export type FileOutputOptions = Readonly<{
  path: string
  format: FileFormat
  /** Gets the lines of a document that can only be written as a whole. */
  workPath: string
  labels: readonly string[]
}>

/** JSONL and CSV grow line by line; a COCO document and Parquet are made of kept lines when the run ends or is cut. */
export class FileOutput implements BatchOutput {
  readonly #lines: LineFile

  constructor(readonly options: FileOutputOptions) {
    const { path, format, workPath } = options
    if (format === 'csv') this.#lines = new LineFile(path, csvHead)
    else this.#lines = new LineFile(format === 'jsonl' ? path : workPath)
  }

  open(bytes: number): Promise<void> {
    return this.#lines.open(bytes)
  }

  add({ line }: ScoredItem): void {
    this.#lines.add(this.options.format === 'csv' ? csvLines(line) : JSON.stringify(line))
  }

  get waitingBytes(): number {
    return this.#lines.waitingBytes
  }

  async flush(): Promise<{ bytes: number; refused: [] }> {
    return { bytes: await this.#lines.flush(), refused: [] }
  }

  async complete(): Promise<void> {
    const { path, format, workPath, labels } = this.options
    if (format === 'jsonl' || format === 'csv') return
    const beside = `${workPath}.out`
    try {
      if (format === 'coco') await writeCoco(beside, workPath, labels)
      else await writeParquet(beside, workPath)
      await onDisk(beside)
      await rename(beside, path)
    } catch (error) {
      await rm(beside, { force: true }).catch(() => undefined)
      throw byTrueName(`${path} cannot be written`, error)
    }
  }

  close(): Promise<void> {
    return this.#lines.close()
  }
}

async function onDisk(path: string): Promise<void> {
  const file = await open(path, 'r+')
  await file.sync().finally(() => file.close())
}
