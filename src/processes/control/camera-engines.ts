import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CameraEntry } from '../../cameras/camera-entry.js'
import { EngineUnavailableError } from '../../cameras/engine-errors.js'
import { analysedUrl } from '../../config/camera-url-settings.js'
import type { EngineProcess } from '../engine/engine-process.js'

/** Numbers left free after an engine's death: it may have given some to frames it took along. */
const seqMargin = 1_000

/** As much of an engine as cameras need. */
type CameraEngine = Pick<EngineProcess, 'tell' | 'ask'>

/** Which engine has a camera, and how it is told of it. */
export class CameraEngines {
  constructor(
    readonly directory: CameraDirectory,
    /** By index. */
    readonly engines: readonly CameraEngine[],
  ) {}

  /** @throws RangeError where its engine is none of these. */
  of(entry: CameraEntry): CameraEngine {
    const engine = this.engines[entry.engine]
    if (!engine) throw new RangeError(`camera "${entry.config.id}" is assigned to engine ${entry.engine}`)
    return engine
  }

  /** @throws CameraNotFoundError; EngineUnavailableError for the moment in which a camera moves. */
  serving(id: string): CameraEngine {
    const entry = this.directory.get(id)
    if (entry.isMoving) throw new EngineUnavailableError('the camera moves to another engine')
    return this.of(entry)
  }

  /** Tells its engine to open it, or what of it has changed. */
  assign(entry: CameraEntry): void {
    // The engine that it goes to is told.
    if (entry.isMoving) return
    const firstSeq = entry.lastSeq === 0 ? 1 : entry.lastSeq + seqMargin
    const camera = entry.config
    const loopbackClosed = {
      analysed: this.directory.loopbackClosedFor(camera.id, analysedUrl(camera)),
      main: this.directory.loopbackClosedFor(camera.id, camera.url),
    }
    this.of(entry).tell({ type: 'setCamera', camera, firstSeq, loopbackClosed })
  }
}
