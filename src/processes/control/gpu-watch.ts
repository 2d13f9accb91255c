import { atMost } from '../../lifecycle/delay.js'
import { backoffMs, type BackoffLimits } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { Service } from '../../lifecycle/service.js'
import type { GpuFigures } from '../../metrics/gpu-metrics.js'
import type { GpuReading } from '../../metrics/gpu-reading.js'
import { EnergyMeter } from './energy-meter.js'
import { hasNvidiaSmi, NvidiaSmi } from './nvidia-smi.js'

export type GpuWatchSettings = Readonly<{
  /** From one reading to the next; 0: nothing is read. */
  intervalMs: number
  /** Longest until the first reading: it opens every card of the machine. */
  startAtMostMs: number
  /** Longest from one reading to the next, beside the interval. Figures are not shown for longer than that. */
  silentAtMostMs: number
  retry: BackoffLimits
}>

export const gpuWatchDefaults = {
  startAtMostMs: 60_000,
  silentAtMostMs: 10_000,
  retry: { baseMs: 10_000, capMs: 300_000 },
} as const

/** A run that tells readings for so long is well: what comes after it is a new trouble. */
const wellAfterMs = 60_000
/** Cards of a machine; what is more was made up. */
const mostCards = 64
/** Longest for the end of a program that the kernel may not be able to end. */
const stopAtMostMs = 1_000

type Card = Readonly<{ uuid: string; energy: EnergyMeter }> & { reading: GpuReading; atMs: number }

/**
 * The figures of NVIDIA's cards, from one `nvidia-smi` that stays. Where that program is not on the PATH at the start, nothing is ever run.
 *
 * It hangs, ends and talks nonsense where a card or its driver is in trouble. One that is silent is ended and started again, ever more
 * rarely; never is there a second one, also where the kernel cannot end the first. Figures that are not fresh are not told.
 */
export class GpuWatch implements Service {
  readonly #settings: GpuWatchSettings
  readonly #cards = new Map<string, Card>()
  #smi: NvidiaSmi | undefined
  #timer: NodeJS.Timeout | undefined
  #beganMs = 0
  #attempt = 0
  /** Why there is no reading now. */
  #reason = ''
  #stopped = false
  #lastReadMs = -Infinity
  readonly #waiting = new Set<() => void>()

  constructor(
    settings: Pick<GpuWatchSettings, 'intervalMs'> & Partial<GpuWatchSettings>,
    readonly log: Log,
  ) {
    this.#settings = { ...gpuWatchDefaults, ...settings }
  }

  /** Never throws. */
  start(): void {
    if (this.#settings.intervalMs > 0 && hasNvidiaSmi()) this.#run()
  }

  /** The cards that were seen since the start, as the driver counts them. */
  get gpus(): readonly GpuFigures[] {
    return [...this.#cards.values()]
      .sort((a, b) => a.reading.index - b.reading.index)
      .map((card) => this.#figuresOf(card))
  }

  /** Resolves once a card has told its figures after that moment (`nowMs`), or where none does. Never rejects. */
  readingAfter(ms: number): Promise<void> {
    if (this.#lastReadMs > ms || this.#smi === undefined) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.add(resolve))
  }

  #goOn(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#goOn()
    clearTimeout(this.#timer)
    this.#smi?.stop('the service stops')
    await atMost(stopAtMostMs, this.#smi?.ended ?? Promise.resolve(''))
  }

  #run(): void {
    this.#beganMs = nowMs()
    let smi: NvidiaSmi
    try {
      smi = new NvidiaSmi(this.#settings.intervalMs, (reading) => this.#read(reading))
    } catch (error) {
      this.#gone(error instanceof Error ? error.message : String(error))
      return
    }
    this.#smi = smi
    this.#listen(this.#settings.startAtMostMs)
    void smi.ended.then((reason) => this.#gone(reason))
  }

  /** From here on it may be silent for so long. */
  #listen(forMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#away('nvidia-smi does not answer'), forMs).unref()
  }

  #read(reading: GpuReading): void {
    const card = this.#cardOf(reading)
    if (card === undefined || this.#stopped) return
    this.#listen(this.#freshMs)
    if (nowMs() - this.#beganMs > wellAfterMs) this.#attempt = 0
    if (this.#reason !== '') this.log.info('figures of the GPU are there again')
    this.#reason = ''
    if (reading.reason !== '' && card.reading.reason === '')
      this.log.warn({ gpu: reading.index, uuid: card.uuid, reason: reading.reason }, 'a GPU is in trouble')
    card.atMs = nowMs()
    this.#lastReadMs = card.atMs
    this.#goOn()
    card.energy.read(reading.powerWatts, card.atMs)
    // One that was lost may not tell its name either.
    card.reading = reading.reason === '' ? reading : { ...reading, name: card.reading.name }
  }

  /** That of the uuid; a card that was lost is known by its number. */
  #cardOf(reading: GpuReading): Card | undefined {
    const { uuid, index } = reading
    const known =
      uuid === undefined
        ? [...this.#cards.values()].find((card) => card.reading.index === index)
        : this.#cards.get(uuid)
    if (known !== undefined || uuid === undefined || this.#cards.size === mostCards) return known
    const well = { ...reading, reason: '' }
    const card: Card = { uuid, energy: new EnergyMeter(this.#freshMs), reading: well, atMs: nowMs() }
    this.#cards.set(uuid, card)
    this.log.info({ gpu: index, uuid, name: reading.name }, 'a GPU tells its figures')
    return card
  }

  /** There are no readings any more, whatever becomes of the program. */
  #away(reason: string): void {
    clearTimeout(this.#timer)
    this.#goOn()
    for (const card of this.#cards.values()) card.energy.pause()
    this.#tell(reason)
    this.#reason = reason
    this.#smi?.stop(reason)
  }

  /** Once for each trouble of a card that was there; where none ever was, it is no trouble. */
  #tell(reason: string): void {
    if (this.#reason !== '') return
    if (this.#cards.size > 0) this.log.warn({ reason }, 'figures of the GPU are missing')
    else this.log.info({ reason }, 'nvidia-smi tells of no GPU')
  }

  #gone(reason: string): void {
    this.#smi = undefined
    if (this.#stopped) return
    this.#away(reason)
    this.#timer = setTimeout(() => this.#run(), backoffMs(this.#attempt, this.#settings.retry)).unref()
    this.#attempt += 1
  }

  get #freshMs(): number {
    return this.#settings.intervalMs + this.#settings.silentAtMostMs
  }

  #figuresOf({ uuid, energy, reading, atMs }: Card): GpuFigures {
    const told = { ...reading, uuid, energyJoules: energy.joules }
    if (this.#reason === '' && nowMs() - atMs <= this.#freshMs) return told
    const reason = this.#reason || 'nvidia-smi does not list it any more'
    return { ...told, ...nothing, reason }
  }
}

const nothing = {
  utilization: null,
  memoryUsedBytes: null,
  memoryTotalBytes: null,
  powerWatts: null,
  powerLimitWatts: null,
}
