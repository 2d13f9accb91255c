import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { askGpus } from '../../../src/backends/onnxruntime/ask-gpus.js'
import { cardOfDevice, driverVersion } from '../../../src/backends/onnxruntime/nvidia-cards.js'
import { gpuQueryWith, type GpuReading, gpuReading } from '../../../src/metrics/gpu-reading.js'
import type { Figures } from '../bench.js'
import type { Window } from './measure.js'

/** The name of a card, and the driver where that tells its version; undefined where there is no card, or no `nvidia-smi`. */
export async function cardText(deviceId: number, driver = driverVersion()): Promise<string | undefined> {
  const name = (await cardOf(deviceId))?.name
  return name && [name, ...(driver === undefined ? [] : [`driver ${driver}`])].join(', ')
}

/** Where cards differ, and nobody knows which CUDA means, the one of that number. */
async function cardOf(deviceId: number): Promise<GpuReading | undefined> {
  const cards = await askGpus()
  return cardOfDevice(deviceId, cards) ?? cards.find(({ index }) => index === deviceId)
}

/** Beside what every reading has. */
const decoderField = 'utilization.decoder'
type Figure = 'gpuPercent' | 'gpuMiB' | 'watts' | 'decoderPercent'
type Sample = Readonly<Record<Figure, number> & { atMs: number }>

const everyMs = 200

/** Watches a card while others use it: an `nvidia-smi` that tells how it stands five times a second. */
export class CardWatch {
  readonly #samples: Sample[] = []

  private constructor(readonly child: ChildProcess) {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const sample = sampleOf(line, Date.now())
      if (sample) this.#samples.push(sample)
    })
    // What it cannot tell is left out.
    child.on('error', () => undefined)
  }

  static async start(deviceId: number): Promise<CardWatch> {
    const { index = deviceId } = (await cardOf(deviceId)) ?? {}
    const args = [...gpuQueryWith([decoderField]), '-i', String(index), `--loop-ms=${everyMs}`]
    return new CardWatch(spawn('nvidia-smi', args, { stdio: ['ignore', 'pipe', 'ignore'] }))
  }

  /** Memory in use now, MiB. */
  get mib(): number | undefined {
    const mib = this.#samples.at(-1)?.gpuMiB
    return Number.isFinite(mib) ? mib : undefined
  }

  /**
   * What the card did beside a measurement: means of the time in the windows, the most and the least of its memory, and, where the figures
   * have a rate, what a thousand cost. What the card does not tell is left out.
   *
   * @param mibBefore - memory in use before it began.
   */
  beside(figures: Figures, windows: readonly Window[], mibBefore?: number): Figures {
    const samples = this.#samples.filter(({ atMs }) =>
      windows.some(([from, to]) => atMs >= from && atMs <= to),
    )
    const of = (figure: Figure) => samples.map((sample) => sample[figure]).filter(Number.isFinite)
    const mean = (figure: Figure) => of(figure).reduce((sum, value) => sum + value, 0) / of(figure).length
    const watts = mean('watts')
    const all = {
      gpuPercent: mean('gpuPercent'),
      decoderPercent: mean('decoderPercent'),
      watts,
      joulesPer1000: (watts / Number(figures['perSecond'])) * 1e3,
      gpuMiB: Math.max(...of('gpuMiB')),
      gpuMiBLeast: Math.min(...of('gpuMiB')),
      gpuMiBBefore: mibBefore ?? Number.NaN,
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => Number.isFinite(value)))
  }

  stop(): void {
    this.child.kill()
  }
}

/** Of a line that begins with the figure of the decoder; what is not a number is not told. */
function sampleOf(line: string, atMs: number): Sample | undefined {
  const [decoder = '', ...cells] = line.split(',')
  const reading = gpuReading(cells.join(','))
  if (reading === undefined) return undefined
  const { utilization, memoryUsedBytes, powerWatts } = reading
  return {
    atMs,
    gpuPercent: (utilization ?? Number.NaN) * 100,
    gpuMiB: (memoryUsedBytes ?? Number.NaN) / 1024 ** 2,
    watts: powerWatts ?? Number.NaN,
    decoderPercent: Number.parseFloat(decoder),
  }
}
