import {
  serverTlsDemands,
  serverTlsPaths,
  validityFault,
  validityOf,
  type Validity,
} from '../../config/server-tls.js'
import type { ServerTls } from '../../config/server.js'
import type { TlsMaterial } from '../../config/tls-files.js'
import { ChangingTlsFiles } from '../../lifecycle/changing-tls-files.js'
import { wallMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { TlsMetrics } from '../../metrics/tls-metrics.js'

/** A certificate that runs out is spoken of so often. */
const tellEveryMs = 24 * 3_600_000
/** Between two looks at the clock. */
const lookEveryMs = 60_000

export type ServerCertificatesOptions = Readonly<{
  everyMs?: number
  /** Unix milliseconds. */
  clock?: () => number
}>

/** The files of `server.tls` while the service runs: read again, told to whoever ends TLS, and warned of in time. */
export class ServerCertificates {
  readonly #files: ChangingTlsFiles
  readonly #clock: () => number
  #timer: NodeJS.Timeout | undefined
  #toldMs = -Infinity

  /** @throws InternalError for files with a fault, which are told when the settings are read. */
  constructor(
    tls: ServerTls,
    readonly metrics: TlsMetrics,
    readonly log: Log,
    { everyMs, clock = wallMs }: ServerCertificatesOptions = {},
  ) {
    this.#clock = clock
    this.#files = new ChangingTlsFiles(serverTlsPaths(tls), 'server.tls', log, {
      ...serverTlsDemands,
      caSetting: 'clientCa',
      ...(everyMs !== undefined && { everyMs }),
    })
    this.#files.onChange(() => this.#changed())
  }

  /** What is in use. */
  get current(): TlsMaterial {
    return this.#files.current
  }

  /** Called with what is new. */
  onChange(listener: (material: TlsMaterial) => void): void {
    this.#files.onChange(listener)
  }

  /** Looks at the files and at the clock from here on. */
  start(): void {
    this.#changed()
    this.#files.start()
    this.#timer ??= setInterval(() => this.#warn(), lookEveryMs).unref()
  }

  /** Reads the files at once. Resolves when what is new is in use here, and what is wrong was told. Never rejects. */
  async readAgain(): Promise<void> {
    this.log.info('the TLS files are read again, as asked')
    await this.#files.refresh()
    // What is wrong with files is told at the second look: they may be half written at the first.
    await this.#files.refresh()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#files.close()
  }

  #changed(): void {
    for (const [file, { untilMs }] of this.#validities())
      this.metrics.expiry.set({ file }, Math.floor(untilMs / 1_000))
    this.#toldMs = -Infinity
    this.#warn()
  }

  #warn(): void {
    const now = this.#clock()
    if (now - this.#toldMs < tellEveryMs) return
    for (const [file, validity] of this.#validities()) {
      const reason = validityFault(validity, now)
      if (reason === undefined) continue
      this.#toldMs = now
      const at = {
        setting: `server.tls.${file}`,
        reason,
        fix: 'Renew it; the files are read again by themselves.',
      }
      this.log.warn(at, 'a certificate of server.tls has to be renewed')
    }
  }

  #validities(): readonly (readonly [file: 'cert' | 'clientCa', validity: Validity])[] {
    const { cert, ca } = this.current
    return [
      ...(cert === undefined ? [] : [['cert', validityOf(cert)] as const]),
      ...(ca === undefined ? [] : [['clientCa', validityOf(ca)] as const]),
    ]
  }
}
