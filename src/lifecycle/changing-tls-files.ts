import { stat } from 'node:fs/promises'
import { readTlsFiles, type TlsDemands, type TlsMaterial, type TlsPaths } from '../config/tls-files.js'
import { InternalError } from '../errors.js'
import type { PlainLog } from './thread-log.js'

/** A look costs a `stat` of each file. */
const usualEveryMs = 5_000

export type ChangingTlsOptions = TlsDemands &
  Readonly<{
    everyMs?: number
    /** Name of the setting for {@link TlsPaths} `ca`; default: the same. */
    caSetting?: string
  }>

/**
 * PEM files that are read again when they change, also where they are links that are swapped, as Kubernetes does it.
 *
 * Files that do not fit together, or that are half written, change nothing: what was read before stays, and the log says so once, as
 * soon as two looks in a row find the same files at fault. Asking by {@link refresh} where a connection begins is enough for a client;
 * a server starts looking by itself.
 */
export class ChangingTlsFiles {
  #material: TlsMaterial
  #seen = ''
  #told = ''
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  readonly #listeners = new Set<(material: TlsMaterial) => void>()

  /**
   * Reads the files.
   *
   * @param setting - where they stand in the settings, `server.tls`: for the log.
   * @throws InternalError for files with a fault: {@link readTlsFiles} tells of those when the settings are read.
   */
  constructor(
    readonly paths: TlsPaths,
    readonly setting: string,
    readonly log: PlainLog,
    readonly options: ChangingTlsOptions = {},
  ) {
    const { material, faults } = readTlsFiles(paths, options)
    const [fault] = faults
    if (fault !== undefined) throw new InternalError(`${setting}.${fault.setting}: ${fault.message}`)
    this.#material = material
  }

  /** What was read last and is whole. */
  get current(): TlsMaterial {
    return this.#material
  }

  /** Called with what is new. @returns what takes the listener away. */
  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Looks now and then from here on. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.refresh(), this.options.everyMs ?? usualEveryMs)
    this.#timer.unref()
  }

  /** Looks at the files, and reads them where they have changed. Never rejects. @returns {@link current}, which may be new. */
  async refresh(): Promise<TlsMaterial> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    await this.#looking
    return this.#material
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#listeners.clear()
  }

  async #look(): Promise<void> {
    const state = await this.#state()
    const isSettled = state === this.#seen
    if (isSettled && (this.#told === '' || this.#told === state)) return
    this.#seen = state
    const { material, faults } = readTlsFiles(this.paths, this.options)
    const [fault] = faults
    if (fault === undefined) {
      this.#told = ''
      this.#take(material)
      return
    }
    // One file of a pair may be there already, and the other about to come.
    this.#told = isSettled ? state : 'unsettled'
    if (!isSettled) return
    const { caSetting = 'ca' } = this.options
    const name = fault.setting === 'ca' ? caSetting : fault.setting
    const at = { setting: `${this.setting}.${name}`, reason: fault.message, fix: fault.hint }
    this.log.warn(at, 'changed TLS files cannot be used, the ones before stay in use')
  }

  #take(material: TlsMaterial): void {
    const before = this.#material
    if ((['ca', 'cert', 'key'] as const).every((file) => material[file] === before[file])) return
    this.#material = material
    this.log.info({ setting: this.setting }, 'changed TLS files are in use')
    for (const listener of this.#listeners) listener(material)
  }

  /** What tells a file from its successor; through links. */
  async #state(): Promise<string> {
    const files = [this.paths.ca, this.paths.cert, this.paths.key].map(async (path) => {
      if (path === undefined) return ''
      try {
        const { ino, size, mtimeMs, ctimeMs } = await stat(path)
        return [ino, size, mtimeMs, ctimeMs].join(' ')
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? 'unknown'
      }
    })
    return (await Promise.all(files)).join('\n')
  }
}
