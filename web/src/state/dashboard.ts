import { api } from '../api/client.js'
import { saveToken } from '../api/token.js'
import type { Camera } from '../api/types.js'
import { Models } from './models.js'
import { Pictures } from './pictures.js'
import { Poller } from './poller.js'
import { Results } from './results.js'
import { SiteCoverage } from './site-coverage.js'
import { Store } from './store.js'

export type Toast = Readonly<{ id: number; kind: 'done' | 'failed'; text: string }>

const toastMs = 5_000

/** Everything the page knows and does; the views only show it. */
export class Dashboard {
  readonly poller = new Poller()
  readonly results = new Results()
  readonly pictures = new Pictures()
  readonly models = new Models()
  readonly coverage = new SiteCoverage()
  readonly toasts = new Store<readonly Toast[]>([])
  #toastCount = 0

  start(): void {
    void this.poller.start()
    this.pictures.start()
    void this.results.start()
    this.coverage.start()
  }

  stop(): void {
    this.poller.stop()
    this.pictures.stop()
    this.results.stop()
    this.coverage.stop()
  }

  /** Begins again with a token. @returns whether the service took it. */
  async unlock(token: string): Promise<boolean> {
    saveToken(token)
    await this.poller.refresh()
    if (this.poller.link.value.state !== 'up') return false
    this.results.retryNow()
    this.pictures.retryNow()
    void this.coverage.refresh()
    if (this.models.isWatched) void this.models.refresh()
    return true
  }

  async addCamera(camera: Readonly<Record<string, unknown>>): Promise<Camera> {
    const added = await api.addCamera(camera)
    void this.poller.refresh()
    this.toast('done', `Camera ${added.id} was added.`)
    return added
  }

  /** @throws ApiError what is wrong with the changes; then nothing has changed. */
  async changeCamera(id: string, changes: Readonly<Record<string, unknown>>): Promise<void> {
    const changed = await api.changeCamera(id, changes)
    this.poller.cameras.update((cameras) => cameras?.map((camera) => (camera.id === id ? changed : camera)))
    void this.poller.refresh()
    this.toast('done', `Camera ${id} was changed.`)
  }

  async setEnabled(id: string, enabled: boolean): Promise<void> {
    await this.#attempt(async () => {
      const changed = await api.setEnabled(id, enabled)
      this.poller.cameras.update((cameras) => cameras?.map((camera) => (camera.id === id ? changed : camera)))
      return `Camera ${id} was switched ${enabled ? 'on' : 'off'}.`
    })
  }

  async removeCamera(id: string): Promise<void> {
    await this.#attempt(async () => {
      await api.removeCamera(id)
      this.poller.cameras.update((cameras) => cameras?.filter((camera) => camera.id !== id))
      this.results.forget(id)
      this.pictures.forget(id)
      return `Camera ${id} was removed.`
    })
  }

  /** @param how - where clients may not load, asking for a model loads it. @throws ApiError, UnreachableError */
  loadModel(name: string, how: 'load' | 'ask'): Promise<void> {
    const load = how === 'load' ? api.loadModel : api.askForModel
    return this.#changeModels(load(name), `Model ${name} is loaded.`)
  }

  /** @throws ApiError, UnreachableError */
  unloadModel(name: string): Promise<void> {
    return this.#changeModels(api.unloadModel(name), `Model ${name} was unloaded.`)
  }

  /** Starts a model server that nobody has asked yet. @throws ApiError, UnreachableError */
  wakeModels(): Promise<void> {
    return this.#changeModels(api.wakeModels(), 'The model server was started.')
  }

  async #changeModels(change: Promise<unknown>, done: string): Promise<void> {
    try {
      await change
      this.toast('done', done)
    } finally {
      await this.models.refresh()
    }
  }

  toast(kind: Toast['kind'], text: string): void {
    this.#toastCount += 1
    const toast = { id: this.#toastCount, kind, text }
    this.toasts.update((toasts) => [...toasts.slice(-3), toast])
    setTimeout(() => this.dismiss(toast.id), toastMs)
  }

  dismiss(id: number): void {
    this.toasts.update((toasts) => toasts.filter((toast) => toast.id !== id))
  }

  async #attempt(action: () => Promise<string>): Promise<void> {
    try {
      this.toast('done', await action())
    } catch (error) {
      this.toast('failed', error instanceof Error ? error.message : 'That did not work.')
    }
    void this.poller.refresh()
  }
}
