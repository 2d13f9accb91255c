import { createHash } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { driverVersion, gpuIdentity } from '../backends/onnxruntime/nvidia-cards.js'
import { onnxRuntimeVersion } from '../backends/onnxruntime/providers.js'
import { keptFolder } from '../lifecycle/kept-folder.js'
import type { Float16Finding } from './float16.js'

/** Files of both models, the size that is measured, and where. */
export type Compared = Readonly<{
  paths: readonly [own: string, float16: string]
  size: number
  deviceId: number
}>

/** More than the cards and models of a machine; the oldest go first. */
const mostKept = 64

/**
 * What was measured of models in float32 and float16, so that a start need not measure it again: by the card, its driver, the runtime, and the
 * files. Where the card does not say which it is, nothing is kept.
 */
export class Float16Findings {
  /** @param folder - asked where there is a card; undefined: nothing is kept. */
  constructor(
    readonly folder: () => string | undefined = keptFolder,
    readonly cardOf: (deviceId: number) => Promise<string | undefined> = identityOf,
  ) {}

  async find(compared: Compared): Promise<Float16Finding | undefined> {
    const key = await this.#keyOf(compared)
    return key === undefined ? undefined : this.#read()[key]
  }

  /** Does nothing where it cannot be written: it is measured again then. */
  async keep(compared: Compared, finding: Float16Finding): Promise<void> {
    const key = await this.#keyOf(compared)
    if (key === undefined) return
    const { [key]: _, ...others } = this.#read()
    const kept = Object.fromEntries([...Object.entries(others).slice(1 - mostKept), [key, finding]])
    try {
      const file = this.#file
      writeFileSync(`${file}.${process.pid}`, JSON.stringify(kept), { mode: 0o600 })
      renameSync(`${file}.${process.pid}`, file)
    } catch {
      return
    }
  }

  get #file(): string {
    return join(this.folder() ?? '', 'float16.json')
  }

  async #keyOf({ paths, size, deviceId }: Compared): Promise<string | undefined> {
    const card = await this.cardOf(deviceId)
    if (card === undefined || this.folder() === undefined) return undefined
    const prints = paths.map((path) => {
      const { size: bytes, mtimeMs } = statSync(path)
      return [path, bytes, mtimeMs]
    })
    const text = JSON.stringify([card, onnxRuntimeVersion(), size, prints])
    return createHash('sha256').update(text).digest('base64url')
  }

  #read(): Readonly<Record<string, Float16Finding>> {
    try {
      const kept: unknown = JSON.parse(readFileSync(this.#file, 'utf8'))
      return Object.fromEntries(
        Object.entries(kept as Record<string, unknown>).filter((entry): entry is [string, Float16Finding] =>
          isFinding(entry[1]),
        ),
      )
    } catch {
      return {}
    }
  }
}

function isFinding(value: unknown): value is Float16Finding {
  const { size, ms, float16Ms } = (value ?? {}) as Partial<Record<keyof Float16Finding, unknown>>
  return [size, ms, float16Ms].every((figure) => typeof figure === 'number' && figure > 0)
}

async function identityOf(deviceId: number): Promise<string | undefined> {
  const uuid = await gpuIdentity(deviceId)
  return uuid === undefined ? undefined : `${uuid} ${driverVersion() ?? ''}`
}
