import {
  distinctRepositories,
  folderReason,
  type UnreadableRepositories,
  unreadableReason,
  unreadableText,
} from '../../repository/repository-folder.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { type RepositoryScan, scanRepositories } from '../../repository/repository-files.js'

/** A network share that is gone lets its reader wait, for minutes or for ever. */
const answerAtMostMs = 5_000

/** The folders of models, and which of them cannot be read now. A share that is away does not hold anybody up. */
export class WatchedRepositories {
  readonly #unreadable = new Map<string, string>()
  /** Looks that still wait for their folder. */
  readonly #looking = new Map<string, Promise<string | undefined>>()

  /** @param configName - a model that has `configs/<configName>.pbtxt` is configured by it */
  constructor(
    readonly folders: readonly string[],
    readonly configName: string | undefined,
    readonly log: Log,
  ) {}

  get unreadable(): UnreadableRepositories {
    return this.#unreadable
  }

  /** @returns those that could not be read before and now can. */
  async look(): Promise<readonly string[]> {
    const before = new Set(this.#unreadable.keys())
    await Promise.all(
      this.folders.map(async (repository) => this.#note(repository, await this.#reason(repository))),
    )
    return [...before].filter((repository) => !this.#unreadable.has(repository))
  }

  /** What those hold that can be read. */
  scan(): RepositoryScan {
    const readable = this.folders.filter((repository) => !this.#unreadable.has(repository))
    return scanRepositories(
      distinctRepositories(readable),
      (repository, error) => this.#note(repository, folderReason(repository, error)),
      this.configName,
    )
  }

  #reason(repository: string): Promise<string | undefined> {
    const looking =
      this.#looking.get(repository) ??
      unreadableReason(repository).finally(() => this.#looking.delete(repository))
    this.#looking.set(repository, looking)
    return atMost(
      answerAtMostMs,
      looking.then((reason) => reason ?? ''),
    ).then((reason) => (reason === undefined ? 'it does not answer' : reason === '' ? undefined : reason))
  }

  #note(repository: string, reason: string | undefined): void {
    const before = this.#unreadable.get(repository)
    if (reason === before) return
    if (reason === undefined) {
      this.#unreadable.delete(repository)
      this.log.info({ repository }, 'model repository can be read again')
      return
    }
    this.#unreadable.set(repository, reason)
    this.log.error({ repository, reason }, `${unreadableText(repository, reason)}; what serves goes on`)
  }
}
