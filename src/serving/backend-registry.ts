import { ModelConfigError } from '../repository/errors.js'
import type { Backend } from '../runtime/backend.js'
import { CropBackend } from '../detector/crop/crop-backend.js'
import { DetectionHeadBackend } from '../detector/detection-head/detection-head-backend.js'
import { ImageDecodeBackend } from '../backends/image-decode/image-decode-backend.js'
import { LetterboxBackend } from '../detector/letterbox/letterbox-backend.js'

/** Backends by the name that a configuration gives. Ensembles are none: they run no model of their own. */
export class BackendRegistry {
  readonly #backends: ReadonlyMap<string, Backend>

  /** @param others - beside those that need nothing from the server; of two with one name the later counts. */
  constructor(others: readonly Backend[]) {
    const all = [
      new ImageDecodeBackend(),
      new LetterboxBackend(),
      new DetectionHeadBackend(),
      new CropBackend(),
      ...others,
    ]
    this.#backends = new Map(all.map((backend) => [backend.name, backend]))
  }

  get names(): readonly string[] {
    return [...this.#backends.keys()]
  }

  /** @throws ModelConfigError for names that are not known. */
  find(name: string, model: string): Backend {
    const backend = this.#backends.get(name)
    if (backend !== undefined) return backend
    throw new ModelConfigError(
      `model "${model}": backend "${name}" is not available`,
      `There are: ${this.names.join(', ')}.`,
    )
  }
}
