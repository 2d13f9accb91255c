import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { cameraSchema, type CameraConfig } from '../config/camera.js'
import { textOfBytes } from '../config/text-file.js'
import { GantryError } from '../errors.js'
import { systemLimit } from '../lifecycle/system-limit.js'

const fileSchema = z.strictObject({ version: z.literal(1), cameras: z.array(cameraSchema) })

export class CameraStoreError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint = 'Mend the file, or move it away to go on with the cameras of the pipeline file only.'
  constructor(path: string, cause: unknown) {
    super(
      `saved cameras in ${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
    this.name = 'CameraStoreError'
  }
}

export class CameraStoreWriteError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(path: string, cause: unknown) {
    const limit = systemLimit(cause)
    const reason = limit?.reason ?? (cause instanceof Error ? cause.message : String(cause))
    super(`cameras cannot be saved in ${path}: ${reason}`, { cause })
    this.name = 'CameraStoreWriteError'
    this.hint = limit?.hint ?? 'See that store.path can be written, or leave out persist.'
  }
}

/** Where cameras are kept over a restart. */
export interface KeptCameras {
  /** @throws CameraStoreError */
  load(): Promise<readonly CameraConfig[]>
  /**
   * Resolves once the change is kept.
   *
   * @param all - as they are with the change.
   * @param change - `config` is absent for a camera that is not kept any more.
   * @throws CameraStoreWriteError, or what says why it cannot be kept
   */
  save(all: readonly CameraConfig[], change: Readonly<{ id: string; config?: CameraConfig }>): Promise<void>
}

/** Cameras the user asked to keep (`persist: true`), in one file that is replaced as a whole. It holds credentials: mode 0600. */
export class CameraStore implements KeptCameras {
  readonly #path: string
  #writing: Promise<void> = Promise.resolve()

  constructor(readonly dir: string) {
    this.#path = join(dir, 'cameras.json')
  }

  /** @throws CameraStoreError when the file is there and cannot be understood. */
  async load(): Promise<readonly CameraConfig[]> {
    const bytes = await readFile(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw new CameraStoreError(this.#path, error)
    })
    if (bytes === undefined) return []
    try {
      return fileSchema.parse(JSON.parse(textOfBytes(bytes))).cameras
    } catch (error) {
      throw new CameraStoreError(this.#path, error)
    }
  }

  /**
   * Cameras are kept elsewhere from now on: the file lies beside under another name, and is not read any more.
   *
   * @returns its path.
   * @throws CameraStoreWriteError
   */
  async setAside(): Promise<string> {
    const aside = join(this.dir, 'cameras.before-cluster.json')
    try {
      await rename(this.#path, aside)
      return aside
    } catch (error) {
      throw new CameraStoreWriteError(this.#path, error)
    }
  }

  /**
   * Writes beside and renames, one write after another, so that a crash and a full disk leave the old file or the new one.
   *
   * @throws CameraStoreWriteError
   */
  save(cameras: readonly CameraConfig[]): Promise<void> {
    const text = `${JSON.stringify({ version: 1, cameras }, null, 2)}\n`
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write(text))
    return this.#writing
  }

  async #write(text: string): Promise<void> {
    const beside = `${this.#path}.${process.pid}.tmp`
    try {
      await mkdir(this.dir, { recursive: true })
      await writeWhole(beside, text)
      await rename(beside, this.#path)
    } catch (error) {
      await rm(beside, { force: true }).catch(() => undefined)
      throw new CameraStoreWriteError(this.#path, error)
    }
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
