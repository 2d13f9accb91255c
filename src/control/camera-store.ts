import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { cameraSchema, type CameraConfig } from '../config/camera.js'
import { GantryError } from '../errors.js'

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

/** Cameras the user asked to keep (`persist: true`), in one file that is replaced as a whole. It holds credentials: mode 0600. */
export class CameraStore {
  readonly #path: string
  #writing: Promise<void> = Promise.resolve()

  constructor(readonly dir: string) {
    this.#path = join(dir, 'cameras.json')
  }

  /** @throws CameraStoreError when the file is there and cannot be understood. */
  async load(): Promise<readonly CameraConfig[]> {
    const text = await readFile(this.#path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw new CameraStoreError(this.#path, error)
    })
    if (text === undefined) return []
    try {
      return fileSchema.parse(JSON.parse(text)).cameras
    } catch (error) {
      throw new CameraStoreError(this.#path, error)
    }
  }

  /** Writes beside and renames, one write after another, so that a crash leaves the old file or the new one. */
  save(cameras: readonly CameraConfig[]): Promise<void> {
    const text = `${JSON.stringify({ version: 1, cameras }, null, 2)}\n`
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write(text))
    return this.#writing
  }

  async #write(text: string): Promise<void> {
    await mkdir(this.dir, { recursive: true })
    const beside = `${this.#path}.${process.pid}.tmp`
    const file = await open(beside, 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(beside, this.#path)
  }
}
