import type { AdmittedCamera, TakenSnapshot } from '../../api/gantry.js'
import type { CameraPreview } from '../../api/preview-schema.js'
import type { ResultCache } from '../../cache/result-cache.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CameraEntry } from '../../cameras/camera-entry.js'
import type { CameraConfig, CameraPatch, NewCamera } from '../../config/camera.js'
import type { CameraPreviewRequest } from '../../config/camera-preview.js'
import { fromBase64, toBase64 } from '../../lifecycle/base64.js'
import type { Log } from '../../lifecycle/log.js'
import { Turns } from '../../lifecycle/turns.js'
import { mainPictureAtMostMs } from '../engine/protocol.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'
import type { CameraEngines } from './camera-engines.js'
import { CameraPreviews } from './camera-previews.js'
import type { Capacity } from './capacity.js'

/** Longest for a picture of a camera's main stream, with time to tell why there is none. */
const snapshotAtMostMs = mainPictureAtMostMs + 2_000

export type CameraRequestsDeps = Readonly<{
  directory: CameraDirectory
  engines: CameraEngines
  capacity: Pick<Capacity, 'admit'>
  cache: Pick<ResultCache, 'forget'>
  /** `undefined` where API clients get no models. */
  modelServer: Pick<ModelServerProcess, 'giveWay'> | undefined
  log: Log
  /** A camera is not there any more; its engine may not know yet. */
  removed(id: string): void
}>

/** What clients ask of cameras: that they come, change and go, and what they show now. */
export class CameraRequests {
  /** A camera is saved before its engine is told; two changes of one must not reach the engine the other way round. */
  readonly #turns = new Turns()
  readonly #previews: CameraPreviews

  constructor(readonly deps: CameraRequestsDeps) {
    const { directory, log } = deps
    this.#previews = new CameraPreviews({ ...directory.deps, directory, log })
  }

  add(camera: NewCamera): Promise<AdmittedCamera> {
    const { directory, modelServer } = this.deps
    return this.#turns.take(camera.id, () =>
      this.#admit(camera, camera.enabled, async () => {
        const entry = await directory.add(camera)
        modelServer?.giveWay()
        return entry
      }),
    )
  }

  patch(id: string, patch: CameraPatch): Promise<AdmittedCamera> {
    const { directory } = this.deps
    return this.#turns.take(id, () => {
      const { config } = directory.get(id)
      const isSwitchedOn = patch.enabled === true && !config.enabled
      return this.#admit({ id, sampleFps: patch.sampleFps ?? config.sampleFps }, isSwitchedOn, async () => {
        const entry = await directory.patch(id, patch)
        entry.switched()
        return entry
      })
    })
  }

  remove(id: string): Promise<void> {
    return this.#turns.take(id, () => this.#remove(id))
  }

  /** Whoever keeps the cameras says that one runs here, with these settings. */
  follow(camera: CameraConfig): Promise<void> {
    const { directory, engines, modelServer } = this.deps
    return this.#turns.take(camera.id, () => {
      const entry = directory.follow(camera)
      if (entry !== undefined) {
        entry.switched()
        modelServer?.giveWay()
        engines.assign(entry)
      }
      return Promise.resolve()
    })
  }

  /** And that one does not run here any more. @param isRemoved - nor anywhere else */
  release(id: string, isRemoved: boolean): Promise<void> {
    return this.#turns.take(id, async () => {
      const entry = this.deps.directory.release(id)
      if (entry !== undefined) this.#letGo(entry)
      // Its results may be here from when this node had it.
      if (isRemoved) await this.#forget(id)
    })
  }

  #letGo(entry: CameraEntry): void {
    const { id } = entry.config
    this.deps.removed(id)
    if (!this.deps.engines.of(entry).tell({ type: 'removeCamera', cameraId: id }))
      this.deps.directory.left(entry)
  }

  preview(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview> {
    return this.#previews.look(asked, signal)
  }

  async snapshot(id: string, wishes: Readonly<{ overlay: boolean; own: boolean }>): Promise<TakenSnapshot> {
    const question = { type: 'snapshot', cameraId: id, ...wishes } as const
    const { jpeg, ...facts } = await this.deps.engines.serving(id).ask(question, snapshotAtMostMs)
    return { ...facts, jpeg: fromBase64(jpeg) }
  }

  async push(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>> {
    return this.deps.engines.serving(id).ask({ type: 'pushFrame', cameraId: id, image: toBase64(image) })
  }

  /** Ends previews that are under way. Idempotent. */
  close(): void {
    this.#previews.close()
  }

  /** @param isMore - one more than before will ask for frames. */
  async #admit(
    camera: Readonly<{ id: string; sampleFps: number }>,
    isMore: boolean,
    take: () => Promise<CameraEntry>,
  ): Promise<AdmittedCamera> {
    const { taken, warnings } = isMore
      ? await this.deps.capacity.admit(camera, take)
      : { taken: await take(), warnings: [] }
    this.deps.engines.assign(taken)
    return { ...taken.view(), ...(warnings.length > 0 && { warnings }) }
  }

  async #remove(id: string): Promise<void> {
    this.#letGo(await this.deps.directory.remove(id))
    await this.#forget(id)
  }

  async #forget(id: string): Promise<void> {
    const { cache, log } = this.deps
    await cache.forget(id).catch((error: unknown) => {
      log.warn({ cameraId: id, err: error }, 'cached results of a removed camera stay until they expire')
    })
  }
}
