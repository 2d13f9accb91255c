import type { ConnectionOptions } from 'node:tls'
import type { ClientTlsFiles, TlsSwitch } from '../config/client-tls.js'
import { ChangingTlsFiles } from './changing-tls-files.js'
import type { PlainLog } from './thread-log.js'

/** The `tls` of settings as a client needs it: files are read when the first connection begins, and again when they have changed. */
export class ClientTls {
  #files: ChangingTlsFiles | undefined

  /** @param setting - where it stands in the settings: `sinks.kafka.ssl`. */
  constructor(
    readonly tls: TlsSwitch | undefined,
    readonly setting: string,
    readonly log: PlainLog,
  ) {}

  /**
   * What the next connection is made with; undefined for one without TLS.
   *
   * @throws InternalError where files that were right when the settings were read are not any more
   */
  async options(): Promise<ConnectionOptions | undefined> {
    const { tls } = this
    if (tls === undefined || tls === false) return undefined
    if (tls === true) return {}
    const { servername } = tls
    return { ...(await this.#material(tls)), ...(servername !== undefined && { servername }) }
  }

  async #material({ ca, cert, key, passphrase }: ClientTlsFiles): Promise<ConnectionOptions> {
    if (ca === undefined && cert === undefined) return {}
    this.#files ??= new ChangingTlsFiles({ ca, cert, key, passphrase }, this.setting, this.log)
    return { ...(await this.#files.refresh()) }
  }
}
