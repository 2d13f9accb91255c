import { openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const recordSchema = z.strictObject({
  /** Models that ran or started, with the number of their runs that had ended. */
  active: z.record(z.string(), z.number()),
  /** The model that took more memory than it may, for which the process ended itself. */
  over: z.strictObject({ model: z.string(), reason: z.string() }).nullable(),
})
export type RunRecord = Readonly<z.infer<typeof recordSchema>>

/**
 * A file in which the model server process notes what it does, for whoever finds out that it has ended. What is written is there even if
 * the process is killed in its next instruction.
 */
export class RunRecordFile {
  readonly #descriptor: number
  #length = 0

  /** @throws what the file system throws */
  constructor(file: string) {
    this.#descriptor = openSync(file, 'w', 0o600)
  }

  active(models: ReadonlyMap<string, number>): void {
    this.#write({ active: Object.fromEntries(models), over: null })
  }

  over(model: string, reason: string): void {
    this.#write({ active: {}, over: { model, reason } })
  }

  /** In one call, over what was there before. */
  #write(record: RunRecord): void {
    const text = Buffer.from(JSON.stringify(record))
    const whole =
      text.length < this.#length ? Buffer.concat([text, Buffer.alloc(this.#length - text.length, ' ')]) : text
    this.#length = text.length
    try {
      writeSync(this.#descriptor, whole, 0, whole.length, 0)
    } catch {
      // A full disk: nothing is known then of what runs.
    }
  }
}

/** @param tempDir - of the service. */
export function runRecordFile(tempDir: string): string {
  return join(tempDir, 'model-runs.json')
}

/** Takes the note of a process that has ended. @returns undefined where there is none. */
export function takeRunRecord(file: string): RunRecord | undefined {
  try {
    const record = recordSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
    writeFileSync(file, '')
    return record
  } catch {
    return undefined
  }
}
