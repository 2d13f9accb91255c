import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CameraEntry } from '../../cameras/camera-entry.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { EngineProcess } from '../engine/engine-process.js'

/** Between two looks whether a camera should move, and between two moves of the same one. */
const lookEveryMs = 1_000
const movesAgainAfterMs = 60_000

export type CameraMovesDeps = Readonly<{
  directory: CameraDirectory
  /** By index. */
  engines: readonly EngineProcess[]
  /** Tells the camera's engine, if it is ready, that it serves it. */
  assign: (entry: CameraEntry) => void
  log: Log
}>

/** Moves cameras between engines on several GPUs: from one that failed at once, and to one that is less busy one by one. */
export class CameraMoves {
  #timer: NodeJS.Timeout | undefined

  constructor(readonly deps: CameraMovesDeps) {}

  /** From now on looks now and then whether a camera should move. */
  start(): void {
    this.#timer = setInterval(() => this.#look(), lookEveryMs)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** An engine is gone: it lets go what was to move. */
  engineGone(index: number): void {
    for (const entry of this.deps.directory)
      if (entry.engine === index && entry.isMoving) this.#takeOn(entry, 'its engine ended')
    this.leaveFailed()
  }

  /** Gives cameras of engines whose GPU failed to others, as soon as there are any. */
  leaveFailed(): void {
    const { directory, engines, log } = this.deps
    if (!engines.some(({ ready }) => ready)) return
    for (const entry of directory) {
      const engine = engines[entry.engine]
      if (engine?.left !== true) continue
      const gpu = engine.setup.deviceId
      this.#takeOn(entry, `GPU ${gpu} is left`)
      log.warn({ cameraId: entry.config.id, gpu, engine: entry.engine }, 'camera leaves a GPU that failed')
    }
  }

  /** Its engine has let a camera go, as it was asked to. */
  letGo(entry: CameraEntry): void {
    this.#takeOn(entry, 'it is less busy')
  }

  /** One at a time, since each is without pictures meanwhile. */
  #look(): void {
    const { directory, engines, log } = this.deps
    if ([...directory].some(({ isMoving }) => isMoving)) return
    const now = nowMs()
    const move = directory.nextMove(
      ({ engine, movedMs }) => now - movedMs >= movesAgainAfterMs && engines[engine]?.ready === true,
    )
    if (move === undefined || engines[move.to]?.ready !== true) return
    const { entry, to } = move
    const cameraId = entry.config.id
    entry.movedMs = now
    entry.isMoving = true
    log.info({ cameraId, from: entry.engine, engine: to }, 'camera moves to an engine that is less busy')
    if (engines[entry.engine]?.tell({ type: 'removeCamera', cameraId }) !== true)
      this.#takeOn(entry, 'its engine ended')
  }

  /** By whichever engine is the best now. */
  #takeOn(entry: CameraEntry, reason: string): void {
    entry.movesTo(this.deps.directory.engineFor(entry), `another engine takes it on: ${reason}`)
    this.deps.assign(entry)
  }
}
