import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { ModelConfig } from '../repository/model-config.js'
import type { Log } from '../lifecycle/log.js'
import { printFolder } from '../repository/repository-files.js'
import type { BatchingProbe } from './batching-probe.js'

const findingSchema = z.strictObject({
  /** Of the configuration and the files. */
  print: z.string(),
  pays: z.boolean(),
  figures: z.strictObject({ alone: z.number(), batched: z.number(), batchSize: z.number() }),
})
/** By the folder of the version. */
const fileSchema = z.record(z.string(), findingSchema)

/**
 * What batches were found to save, so that a process that takes the place of this one need not measure it again: that takes several times
 * as long as all else of a load.
 */
export class BatchingFindings {
  readonly #findings: Map<string, z.infer<typeof findingSchema>>

  constructor(
    readonly file: string,
    readonly log: Log,
  ) {
    this.#findings = read(file)
  }

  /** What was found of the same files with the same configuration, or else is found now. @throws what `measure` throws */
  async of(
    versionDir: string,
    config: ModelConfig,
    measure: () => Promise<BatchingProbe>,
  ): Promise<BatchingProbe> {
    const print = printOf(versionDir, config)
    const found = this.#findings.get(versionDir)
    if (print !== undefined && found?.print === print) return { pays: found.pays, figures: found.figures }
    const probe = await measure()
    const { pays, figures } = probe
    if (print !== undefined && figures !== undefined) this.#keep(versionDir, { print, pays, figures })
    return probe
  }

  #keep(versionDir: string, finding: z.infer<typeof findingSchema>): void {
    this.#findings.set(versionDir, finding)
    try {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
      writeFileSync(`${this.file}.new`, JSON.stringify(Object.fromEntries(this.#findings)), { mode: 0o600 })
      renameSync(`${this.file}.new`, this.file)
    } catch (error) {
      this.log.warn(
        { file: this.file, err: error },
        'what batches save is measured again if the process ends',
      )
    }
  }
}

/** `undefined` where the folder cannot be read. */
function printOf(versionDir: string, config: ModelConfig): string | undefined {
  try {
    const files = printFolder({ dir: versionDir, repository: dirname(dirname(versionDir)) })
    return createHash('sha256')
      .update(JSON.stringify([{ ...config, instance_group: [] }, ...files]))
      .digest('base64url')
  } catch {
    return undefined
  }
}

function read(file: string): Map<string, z.infer<typeof findingSchema>> {
  try {
    return new Map(Object.entries(fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')))))
  } catch {
    return new Map()
  }
}
