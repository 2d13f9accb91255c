import type { Log, LogSettings } from '../../lifecycle/log.js'
import type { ModelServerSettings } from '../../serving/model-server.js'

/** Makes the log follow the settings that clients may change. */
export class ModelServerLog {
  constructor(
    readonly log: Log,
    /** As configured: what clients start from. */
    readonly level: LogSettings['level'],
  ) {}

  apply(settings: ReturnType<ModelServerSettings['log']>): void {
    this.log.level = this.#levelFor(settings)
  }

  #levelFor(settings: ReturnType<ModelServerSettings['log']>): string {
    if (Number(settings.log_verbose_level) > 0) return 'debug'
    if (settings.log_info === true) return this.level
    if (settings.log_warning === true) return 'warn'
    return settings.log_error === true ? 'error' : 'silent'
  }
}
