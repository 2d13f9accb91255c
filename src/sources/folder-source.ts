import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { CameraConfig } from '../config/camera.js'
import type { CameraStatus } from '../frames/camera-state.js'
import type { FrameSource } from '../frames/frame-source.js'
import { nowMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import type { SourceDeps } from './source-deps.js'
import { StatusTeller } from './status-teller.js'
import { StillEmitter } from './still-emitter.js'

const pictureExtensions = new Set(['.jpg', '.jpeg', '.png', '.webp'])

/** The pictures of a folder, in the order of their names, at the camera's sampling rate. */
export class FolderSource implements FrameSource {
  readonly #teller: StatusTeller
  readonly #emitter: StillEmitter
  readonly #stopping = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(
    readonly camera: CameraConfig,
    readonly path: string,
    readonly deps: SourceDeps,
  ) {
    this.#emitter = new StillEmitter(camera, deps)
    this.#teller = new StatusTeller('connecting', 'starting', (status) => deps.listener.status(status))
  }

  get status(): CameraStatus {
    return this.#teller.status
  }

  decoderCpuSeconds(): number {
    return 0
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    try {
      do {
        const names = await this.#pictures()
        if (names.length === 0)
          return this.#fail(`there is no picture (${[...pictureExtensions].join(' ')}) in the folder`)
        for (const name of names) if (!(await this.#show(name))) return
      } while (this.camera.loop && !signal.aborted)
      if (!signal.aborted) this.#fail('the folder has been shown to its end')
    } catch (error) {
      this.#fail(`the folder cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  async #pictures(): Promise<string[]> {
    const names = await readdir(this.path)
    return names.filter((name) => pictureExtensions.has(extname(name).toLowerCase())).sort()
  }

  /** @returns whether to go on. */
  async #show(name: string): Promise<boolean> {
    const { signal } = this.#stopping
    const dueMs = nowMs() + 1_000 / this.camera.sampleFps
    try {
      await this.#emitter.emit(join(this.path, name))
      this.#teller.set({ state: 'live', reason: '', attempts: 1 })
    } catch (error) {
      this.deps.listener.warning(
        'decode_error',
        `${name}: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
    if (signal.aborted) return false
    return delay(Math.max(0, dueMs - nowMs()), signal)
  }

  #fail(reason: string): void {
    this.#teller.set({ state: 'failed', reason, attempts: 1 })
  }
}
