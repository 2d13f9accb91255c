import { cameraSchema, type CameraConfig, type CameraPatch, type NewCamera } from '../config/camera.js'
import { redactUrl } from '../config/redact.js'
import { CameraExistsError, CameraNotFoundError } from '../engine/engine-errors.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import type { AddressPolicy } from '../sources/address-policy.js'
import { validateCameraUrl } from '../sources/camera-url.js'
import { CameraEntry } from './camera-entry.js'
import type { CameraStore } from './camera-store.js'
import type { CameraView } from './gantry.js'

export type DirectoryDeps = Readonly<{
  store: CameraStore
  metrics: ServiceMetrics
  engines: number
  mediaRoot: string
  addresses: AddressPolicy
}>

/** Every camera there is, where it came from and which engine serves it. */
export class CameraDirectory {
  readonly #entries = new Map<string, CameraEntry>()

  constructor(readonly deps: DirectoryDeps) {}

  get size(): number {
    return this.#entries.size
  }

  [Symbol.iterator](): IterableIterator<CameraEntry> {
    return this.#entries.values()
  }

  find(id: string): CameraEntry | undefined {
    return this.#entries.get(id)
  }

  /** @throws CameraNotFoundError */
  get(id: string): CameraEntry {
    const entry = this.#entries.get(id)
    if (!entry) throw new CameraNotFoundError(id)
    return entry
  }

  /**
   * Cameras of the pipeline file, then those the user asked to keep; a kept camera stands before one of the file with its id.
   *
   * @throws CameraStoreError, CameraUrlError
   */
  async load(fromFile: readonly CameraConfig[]): Promise<void> {
    const kept = await this.deps.store.load()
    for (const camera of fromFile) await this.#admit(camera, false, 'file')
    for (const camera of kept) {
      const inFile = this.#entries.get(camera.id)
      this.#entries.delete(camera.id)
      await this.#admit(camera, true, inFile ? 'file' : 'api')
    }
  }

  /** @throws CameraExistsError, CameraUrlError; then nothing has changed. */
  async add({ persist, ...camera }: NewCamera): Promise<CameraEntry> {
    if (this.#entries.has(camera.id)) throw new CameraExistsError(camera.id)
    const entry = await this.#admit(camera, persist, 'api')
    if (persist) await this.#save()
    return entry
  }

  /** @throws CameraNotFoundError, CameraUrlError; then nothing has changed. */
  async patch(id: string, { persist, ...asked }: CameraPatch): Promise<CameraEntry> {
    const entry = this.get(id)
    // A client that sends back the view it was given must not put the mask in place of the password.
    const changes = asked.url === redactUrl(entry.config.url) ? { ...asked, url: undefined } : asked
    const changed = patched(entry.config, changes)
    if (changes.url !== undefined) await validateCameraUrl(changed.url, this.deps)
    const wasKept = entry.persist
    entry.config = changed
    entry.persist = persist ?? entry.persist
    if (wasKept || entry.persist) await this.#save()
    return entry
  }

  /** @throws CameraNotFoundError */
  async remove(id: string): Promise<CameraEntry> {
    const entry = this.get(id)
    this.#entries.delete(id)
    entry.forget()
    if (entry.persist) await this.#save()
    return entry
  }

  views(): CameraView[] {
    return [...this.#entries.values()].map((entry) => entry.view())
  }

  async #admit(camera: CameraConfig, persist: boolean, origin: CameraView['origin']): Promise<CameraEntry> {
    await validateCameraUrl(camera.url, this.deps)
    if (this.#entries.has(camera.id)) throw new CameraExistsError(camera.id)
    const entry = new CameraEntry(camera, persist, origin, this.#leastBusyEngine(), this.deps.metrics)
    this.#entries.set(camera.id, entry)
    return entry
  }

  #leastBusyEngine(): number {
    const load = new Array<number>(this.deps.engines).fill(0)
    for (const { engine } of this) load[engine] = (load[engine] ?? 0) + 1
    return load.indexOf(Math.min(...load))
  }

  #save(): Promise<void> {
    return this.deps.store.save([...this].filter((entry) => entry.persist).map((entry) => entry.config))
  }
}

/** The settings with the changes laid over them: absent leaves as it is, `null` takes away. */
function patched(config: CameraConfig, changes: Omit<CameraPatch, 'persist'>): CameraConfig {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined)
  const all = Object.entries({ ...config, ...Object.fromEntries(given) })
  return cameraSchema.parse(Object.fromEntries(all.filter(([, value]) => value !== null)))
}
