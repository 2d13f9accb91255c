import { PicturePlayer } from '../live/picture-player.js'
import type { StreamConnection, StreamState, Wants } from '../../../clients/typescript/src/index.js'
import { liveStream } from '../stream/live-stream.js'
import { Store } from './store.js'

/** Scrolling past a row of cameras should not subscribe to each of them. */
const settleMs = 120

/**
 * Pictures of the cameras that are on the screen, over a connection of their own: when the line is slow, pictures are skipped
 * and no result is lost to the list.
 */
export class Pictures {
  readonly stream = new Store<StreamState>({ state: 'connecting' })
  readonly #players = new Map<string, PicturePlayer>()
  readonly #watchers = new Map<string, number>()
  readonly #connection: StreamConnection
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    this.#connection = liveStream(
      {
        state: (state) => this.#streamIs(state),
        message: (message) => {
          if (message.type === 'detections') this.#players.get(message.cameraId)?.detections(message)
        },
        picture: (picture) => this.#players.get(picture.header.cameraId)?.picture(picture),
      },
      this.#wants(),
      false,
    )
  }

  start(): void {
    document.addEventListener('visibilitychange', this.#changed)
    this.#connection.start()
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#changed)
    clearTimeout(this.#timer)
    this.#connection.stop()
    for (const player of this.#players.values()) player.dispose()
    this.#players.clear()
  }

  retryNow(): void {
    this.#connection.retryNow()
  }

  player(cameraId: string): PicturePlayer {
    const player = this.#players.get(cameraId) ?? new PicturePlayer()
    this.#players.set(cameraId, player)
    return player
  }

  /** Asks for pictures of a camera until the returned function is called. */
  watch(cameraId: string): () => void {
    if (!this.#watchers.has(cameraId)) this.player(cameraId).paused()
    this.#watchers.set(cameraId, (this.#watchers.get(cameraId) ?? 0) + 1)
    this.#changed()
    let watching = true
    return () => {
      if (!watching) return
      watching = false
      const left = (this.#watchers.get(cameraId) ?? 1) - 1
      if (left > 0) this.#watchers.set(cameraId, left)
      else this.#watchers.delete(cameraId)
      this.#changed()
    }
  }

  forget(cameraId: string): void {
    this.#players.get(cameraId)?.dispose()
    this.#players.delete(cameraId)
  }

  #streamIs(state: StreamState): void {
    if (state.state === 'open' && this.stream.value.state !== 'open') this.#paused()
    this.stream.set(state)
  }

  /** Nothing was asked for, for a while: how long it took says nothing about the cameras. */
  #paused(): void {
    for (const player of this.#players.values()) player.paused()
  }

  readonly #changed = (): void => {
    if (document.hidden) this.#paused()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connection.subscribe(this.#wants()), settleMs)
  }

  #wants(): Wants {
    const cameras = document.hidden ? [] : [...this.#watchers.keys()].sort()
    return { cameras, detections: true, frames: true }
  }
}
