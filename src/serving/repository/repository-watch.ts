import type { Log } from '../../lifecycle/log.js'
import type { ModelManager } from './model-manager.js'

/** Looks again and again whether the repositories can be read, whatever the control mode. */
export class RepositoryWatch {
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(
    readonly manager: Pick<ModelManager, 'lookAtRepositories'>,
    readonly everyMs: number,
    readonly log: Log,
  ) {}

  start(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      void this.manager
        .lookAtRepositories()
        .catch((error: unknown) => this.log.error({ err: error }, 'looking at the model repositories failed'))
        .then(() => this.start())
    }, this.everyMs)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }
}
