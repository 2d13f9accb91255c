import { mainThreadUse, type ThreadUse } from './thread-use.js'

export type SilenceLimits = Readonly<{
  /** A process that beats once a second and is silent this long is hung, unless it is busy. */
  hungAfterMs: number
  /**
   * Processor time that its loop may take between two beats. While it takes some, or waits for a core, it is busy and not hung: one long
   * part of its work, or a machine with too much to do. 0: silence is enough.
   */
  busyCpuMs: number
  /** However busy it is. */
  busyAtMostMs: number
  /** Between two looks at one that is silent. */
  lookEveryMs: number
}>

/** Waits for the beats of a process, and tells whether one that is silent is hung. */
export class SilenceWatch {
  #timer: NodeJS.Timeout | undefined
  #atBeat: ThreadUse | undefined
  #before: ThreadUse | undefined
  #silentMs = 0

  /** @param hung - called once with what is wrong; a beat after that changes nothing. */
  constructor(
    readonly pid: number,
    readonly limits: SilenceLimits,
    readonly hung: (problem: string) => void,
    /** Of the thread that beats. */
    readonly use: (pid: number) => ThreadUse | undefined = mainThreadUse,
  ) {}

  /** It gave a sign of life. */
  beat(): void {
    const { hungAfterMs, lookEveryMs, busyCpuMs } = this.limits
    this.#atBeat = busyCpuMs > 0 ? this.use(this.pid) : undefined
    this.#silentMs = Math.max(0, hungAfterMs - lookEveryMs)
    this.#in(this.#silentMs, () => {
      this.#before = this.use(this.pid)
      this.#lookLater()
    })
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #lookLater(): void {
    this.#in(this.limits.lookEveryMs, () => {
      this.#silentMs += this.limits.lookEveryMs
      this.#look()
    })
  }

  #look(): void {
    const { busyCpuMs, busyAtMostMs } = this.limits
    const now = this.use(this.pid)
    const cpuMs = (now?.cpuMs ?? 0) - (this.#atBeat?.cpuMs ?? 0)
    const isBusy =
      busyCpuMs > 0 &&
      now !== undefined &&
      this.#before !== undefined &&
      (now.runs || now.cpuMs > this.#before.cpuMs)
    if (!isBusy) return this.hung(`gave no sign of life for ${this.#silentMs} ms`)
    if (cpuMs >= busyCpuMs) return this.hung(`gave no sign of life for ${cpuMs} ms of processor time`)
    if (this.#silentMs >= busyAtMostMs)
      return this.hung(`gave no sign of life for ${this.#silentMs} ms, though it is busy`)
    this.#before = now
    this.#lookLater()
  }

  #in(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(then, ms)
  }
}
