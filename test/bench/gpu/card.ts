import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Figures } from '../bench.js'
import type { Window } from './measure.js'

/** What `nvidia-smi` says of a card: its name and the driver; undefined where there is none, or no such program. */
export function cardText(deviceId: number): string | undefined {
  const query = ['-i', String(deviceId), '--query-gpu=name,driver_version', '--format=csv,noheader']
  const { status, stdout } = spawnSync('nvidia-smi', query, { encoding: 'utf8', timeout: 10_000 })
  const [name, driver] = (status === 0 ? stdout : '').trim().split(', ')
  return name && driver ? `${name}, driver ${driver}` : undefined
}

/** As `nvidia-smi` calls them, and as figures do. */
const watched = {
  'utilization.gpu': 'gpuPercent',
  'memory.used': 'gpuMiB',
  'power.draw': 'watts',
  'utilization.decoder': 'decoderPercent',
} as const
type Figure = (typeof watched)[keyof typeof watched]
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

  static start(deviceId: number): CardWatch {
    const query = `--query-gpu=${Object.keys(watched).join(',')}`
    const args = ['-i', String(deviceId), query, '--format=csv,noheader,nounits', `--loop-ms=${everyMs}`]
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

/** Of a line such as `37, 1207, 132.45, [N/A]`; what is not a number is not told. */
function sampleOf(line: string, atMs: number): Sample | undefined {
  const values = line.split(',').map((text) => Number.parseFloat(text))
  const figures = Object.values(watched)
  if (values.length !== figures.length) return undefined
  const [gpuPercent, gpuMiB, watts, decoderPercent] = values as [number, number, number, number]
  return { atMs, gpuPercent, gpuMiB, watts, decoderPercent }
}
