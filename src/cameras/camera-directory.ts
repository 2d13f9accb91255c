import { isDeepStrictEqual } from 'node:util'
import { cameraSchema, type CameraConfig, type CameraPatch, type NewCamera } from '../config/camera.js'
import {
  cameraLoginSettings,
  cameraUrlSettings,
  type CameraUrlSetting,
} from '../config/camera-url-settings.js'
import type { CameraPreviewRequest } from '../config/camera-preview.js'
import type { CameraNetworks } from '../config/camera-networks.js'
import { CameraExistsError, CameraNotFoundError, NoEnginesError } from './engine-errors.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { AddressPolicy } from '../lifecycle/address-policy.js'
import { validateCameraUrl } from '../sources/camera-url.js'
import { CameraUrlError, checkTogether, isRefusal } from '../sources/source-errors.js'
import { CameraEntry } from './camera-entry.js'
import { EngineLoads } from './engine-loads.js'
import { nextMove, type Placed, placeFor } from './spread.js'
import type { KeptCameras } from './camera-store.js'
import { shownConfig, type CameraView } from './camera-view.js'

export type DirectoryDeps = Readonly<{
  store: KeptCameras
  /** Every camera is kept, whether it is asked for or not. */
  keepsAll?: boolean
  metrics: ServiceMetrics
  engines: number
  /** Absent: all engines are alike. */
  loads?: EngineLoads
  mediaRoot: string
  cameraNetworks: CameraNetworks
  /** Cameras whose URL did not come from the pipeline file may not be at loopback addresses. */
  loopbackClosed: boolean
}>

/** Every camera there is, where it came from and which engine serves it. */
export class CameraDirectory {
  readonly #entries = new Map<string, CameraEntry>()
  /** URLs of the pipeline file by camera: whoever writes that file says what may be opened. */
  readonly #fileUrls = new Map<string, ReadonlySet<string>>()
  /** Removed cameras that their engine has not let go yet, by id in the order they were removed. */
  readonly #leaving = new Map<string, CameraEntry[]>()
  readonly #loads: EngineLoads
  #added = 0

  constructor(readonly deps: DirectoryDeps) {
    this.#loads = deps.loads ?? new EngineLoads(deps.engines, false)
  }

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
   * Cameras of the pipeline file, then those the user asked to keep; a kept camera stands before one of the file with its id. A kept
   * camera that cannot be opened any more is there all the same, `failed`, so that it can be changed or removed. Without engines the
   * kept ones stay where they are kept.
   *
   * @throws CameraStoreError; CameraUrlError of a camera in the file
   */
  async load(fromFile: readonly CameraConfig[]): Promise<void> {
    const kept = this.deps.engines === 0 ? [] : await this.deps.store.load()
    for (const camera of fromFile) {
      this.#fileUrls.set(camera.id, new Set(urlsOf(camera)))
      await this.#checkUrls(camera)
      this.#admit(camera, false, 'file')
    }
    for (const camera of kept) {
      const inFile = this.#entries.get(camera.id)
      this.#entries.delete(camera.id)
      this.#admit(camera, true, inFile ? 'file' : 'api')
    }
  }

  /** Cameras of the pipeline file that somebody else keeps. @throws CameraUrlError of one in the file */
  async vouchFor(fromFile: readonly CameraConfig[]): Promise<void> {
    for (const camera of fromFile) {
      this.#fileUrls.set(camera.id, new Set(urlsOf(camera)))
      await this.#checkUrls(camera)
    }
  }

  /** Whether this camera must not be opened at a loopback address by this URL of it. */
  loopbackClosedFor(id: string, url: string): boolean {
    return this.deps.loopbackClosed && this.#fileUrls.get(id)?.has(url) !== true
  }

  /** @throws CameraExistsError, CameraSettingError, CameraUrlError, CameraStoreWriteError, NoEnginesError; then nothing has changed. */
  async add({ persist, ...camera }: NewCamera): Promise<CameraEntry> {
    if (this.deps.engines === 0) throw new NoEnginesError()
    if (this.#entries.has(camera.id)) throw new CameraExistsError(camera.id)
    checkTogether(camera)
    await this.#checkUrls(camera)
    const isKept = persist || this.deps.keepsAll === true
    const entry = this.#admit(camera, isKept, 'api', ++this.#added)
    if (isKept)
      await this.#saveOr(entry, () => {
        this.#entries.delete(camera.id)
        entry.forget()
      })
    return entry
  }

  /** @throws CameraNotFoundError, CameraSettingError, CameraUrlError, CameraStoreWriteError; then nothing has changed. */
  async patch(id: string, { persist, ...asked }: CameraPatch): Promise<CameraEntry> {
    const entry = this.get(id)
    const changes = withoutMasks(entry.config, asked)
    const changed = patched(entry.config, changes)
    checkTogether(changed)
    await this.#checkUrls(
      changed,
      cameraUrlSettings.filter((setting) => changes[setting] !== undefined),
    )
    const { config, persist: wasKept } = entry
    entry.config = changed
    entry.persist = this.deps.keepsAll === true || (persist ?? wasKept)
    if (wasKept || entry.persist)
      await this.#saveOr(entry, () => {
        entry.config = config
        entry.persist = wasKept
      })
    return entry
  }

  /**
   * The camera as it would be, to be looked at: one that is there with the changes laid over it, or a new one. Nothing of it is kept, and it
   * is switched on.
   *
   * @throws CameraSettingError, CameraUrlError; ZodError of a new one without a URL.
   */
  async tried({ id = 'preview', persist: _, ...asked }: CameraPreviewRequest): Promise<CameraConfig> {
    const entry = this.find(id)
    const changes = entry === undefined ? asked : withoutMasks(entry.config, asked)
    const base = entry?.config ?? ({ id } as CameraConfig)
    const camera = patched(base, { ...changes, enabled: true })
    checkTogether(camera)
    await this.#checkUrls(camera)
    return camera
  }

  /**
   * The camera is gone for clients, and `leaving` until its engine has let it go.
   *
   * @throws CameraNotFoundError, CameraStoreWriteError; then nothing has changed.
   */
  async remove(id: string): Promise<CameraEntry> {
    const entry = this.get(id)
    this.#entries.delete(id)
    if (entry.persist) await this.#saveOr(entry, () => this.#entries.set(id, entry))
    return this.#leaves(entry)
  }

  #leaves(entry: CameraEntry): CameraEntry {
    const { id } = entry.config
    this.#leaving.set(id, [...(this.#leaving.get(id) ?? []), entry])
    return entry
  }

  /**
   * The camera runs here by the word of whoever keeps it: it is kept there already, and one that cannot be opened is there all the same.
   *
   * @returns undefined where it runs here with these settings.
   */
  follow(camera: CameraConfig): CameraEntry | undefined {
    const entry = this.#entries.get(camera.id)
    if (entry === undefined) return this.#admit(camera, true, 'api', ++this.#added, true)
    if (isDeepStrictEqual(entry.config, camera)) return undefined
    entry.config = camera
    return entry
  }

  /** It does not run here any more, and whoever keeps it keeps it. */
  release(id: string): CameraEntry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    this.#entries.delete(id)
    return this.#leaves(entry)
  }

  /**
   * The removed camera that messages of its engine about this id are still about; a camera added with the same id comes after it,
   * because an engine lets go before it takes on.
   */
  leaving(id: string): CameraEntry | undefined {
    return this.#leaving.get(id)?.[0]
  }

  /** The engine has let a removed camera go, or never had it. */
  left(entry: CameraEntry): void {
    const { id } = entry.config
    const others = (this.#leaving.get(id) ?? []).filter((other) => other !== entry)
    if (others.length > 0) this.#leaving.set(id, others)
    else this.#leaving.delete(id)
    entry.forget()
    if (others.length === 0 && !this.#entries.has(id)) void this.deps.metrics.cameraSeries.retire(id)
  }

  /** What was leaving an engine that is gone has left. */
  engineGone(engine: number): void {
    for (const entry of [...this.#leaving.values()].flat()) if (entry.engine === engine) this.left(entry)
  }

  views(): CameraView[] {
    return [...this.#entries.values()].map((entry) => entry.view())
  }

  async #checkUrls(
    camera: CameraConfig,
    settings: readonly CameraUrlSetting[] = cameraUrlSettings,
  ): Promise<void> {
    for (const setting of settings) {
      const url = camera[setting]
      if (url !== undefined) await this.#checkUrl(camera.id, url, setting)
    }
  }

  async #checkUrl(id: string, url: string, setting: CameraUrlSetting): Promise<void> {
    const { cameraNetworks, mediaRoot } = this.deps
    const addresses = new AddressPolicy({
      ...cameraNetworks,
      loopbackClosed: this.loopbackClosedFor(id, url),
    })
    try {
      await validateCameraUrl(url, { mediaRoot, addresses })
    } catch (error) {
      // The camera says so, and is tried again.
      if (!isRefusal(error)) return
      if (error instanceof CameraUrlError) error.field = setting
      throw error
    }
  }

  #admit(
    camera: CameraConfig,
    persist: boolean,
    origin: CameraView['origin'],
    life = 0,
    isTakenOver = false,
  ): CameraEntry {
    if (this.#entries.has(camera.id)) throw new CameraExistsError(camera.id)
    const before = this.leaving(camera.id)?.engine
    const entry = new CameraEntry(
      camera,
      { persist, origin, engine: before ?? 0, life, isTakenOver },
      this.deps.metrics,
    )
    entry.engine = before ?? this.engineFor(entry)
    this.deps.metrics.cameraSeries.keep(camera.id)
    this.#entries.set(camera.id, entry)
    return entry
  }

  /** Where a camera is best placed, wherever it is now. */
  engineFor(entry: CameraEntry): number {
    const others = [...this].filter((other) => other !== entry)
    return placeFor(
      this.#demand(entry),
      this.#loads.places,
      others.map((other) => this.#placed(other)),
    )
  }

  /** The camera that should go to another engine next, of those that may. */
  nextMove(
    mayMove: (entry: CameraEntry) => boolean,
  ): Readonly<{ entry: CameraEntry; to: number }> | undefined {
    const cameras = [...this].map((entry) => ({ ...this.#placed(entry), entry }))
    const move = nextMove(this.#loads.places, cameras, ({ entry }) => mayMove(entry))
    return move && { entry: move.camera.entry, to: move.to }
  }

  #placed(entry: CameraEntry): Placed {
    return { engine: entry.engine, framesPerSecond: this.#demand(entry) }
  }

  /** Among engines that are alike cameras only count. */
  #demand(entry: CameraEntry): number {
    return this.#loads.isMeasured ? entry.framesPerSecond : 1
  }

  async #saveOr({ config, persist }: CameraEntry, undo: () => void): Promise<void> {
    const { id } = config
    const isKept = persist && this.#entries.has(id)
    try {
      await this.deps.store.save(
        [...this].filter((entry) => entry.persist).map((entry) => entry.config),
        isKept ? { id, config } : { id },
      )
    } catch (error) {
      undo()
      throw error
    }
  }
}

function urlsOf(camera: CameraConfig): string[] {
  return cameraUrlSettings.map((setting) => camera[setting]).filter((url) => url !== undefined)
}

/** A client that sends back the view it was given must not put the mask in place of the password. */
function withoutMasks(
  config: CameraConfig,
  asked: Omit<CameraPatch, 'persist'>,
): Omit<CameraPatch, 'persist'> {
  const changes = { ...asked }
  const shown = shownConfig(config)
  for (const setting of [...cameraUrlSettings, ...cameraLoginSettings])
    if (shown[setting] !== undefined && asked[setting] === shown[setting]) changes[setting] = undefined
  return changes
}

/** The settings with the changes laid over them: absent leaves as it is, `null` takes away. */
function patched(config: CameraConfig, changes: Omit<CameraPatch, 'persist'>): CameraConfig {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined)
  const all = Object.entries({ ...config, ...Object.fromEntries(given) })
  return cameraSchema.parse(Object.fromEntries(all.filter(([, value]) => value !== null)))
}
