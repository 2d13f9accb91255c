import { spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { childEnvironment } from '../../lifecycle/child-environment.js'
import { nowMs } from '../../lifecycle/clock.js'
import { withDeathSignal } from '../../lifecycle/death-signal.js'
import { type GpuReading, gpuQuery, gpuReading } from '../../metrics/gpu-reading.js'
import { LineSplitter } from '../../sources/line-splitter.js'

const program = 'nvidia-smi'

/** How long it may take to end before it is killed. One that is killed at its work has been seen to leave its card hanging. */
const killAfterMs = 500
/** Far more than it has to say about all cards of a machine in a second. */
const mostBytesASecond = 262_144
/** Characters of what it said last that are kept. */
const mostWords = 200

/** Whether the program is there, which comes with the driver. Nothing is run for it. */
export function hasNvidiaSmi(path = process.env.PATH ?? ''): boolean {
  return path.split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * One run of `nvidia-smi`, which says a line for each card every so often, and dies with us. It stays, since each start of it opens all
 * cards anew, which takes more than a second where nothing else holds the driver loaded.
 */
export class NvidiaSmi {
  /** Resolves when it is gone, with why; later than any line, and never where the kernel cannot end it. */
  readonly ended: Promise<string>
  readonly #child: ChildProcess
  #killTimer: NodeJS.Timeout | undefined
  /** What it said since its last reading. */
  #words = ''
  #secondBeganMs = nowMs()
  #bytes = 0
  #why = ''

  /** @throws what the system has against it at once, such as too little memory. */
  constructor(intervalMs: number, reading: (reading: GpuReading) => void) {
    const args = [...gpuQuery, `--loop-ms=${intervalMs}`]
    this.#child = spawn(...withDeathSignal(program, args), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: childEnvironment(),
    })
    const hear = (line: string) => {
      const said = gpuReading(line)
      if (said !== undefined) {
        this.#words = ''
        reading(said)
      } else if (this.#words === '') this.#words = line.trim().slice(0, mostWords)
    }
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      const lines = new LineSplitter(hear)
      stream?.on('data', (chunk: Buffer) => {
        if (this.#isFlood(chunk.length)) this.stop(`${program} writes more than it has to say`)
        else lines.write(chunk)
      })
      stream?.once('end', () => lines.end())
    }
    this.ended = new Promise((resolve) => {
      const end = (why: string) => {
        clearTimeout(this.#killTimer)
        resolve(this.#why || this.#words || why)
      }
      // One that runs may have other errors, such as a signal that cannot be sent.
      this.#child.on('error', (error) => this.#child.pid === undefined && end(error.message))
      this.#child.once('close', (code, signal) =>
        end(`${program} ended with ${signal ?? `exit code ${code}`}`),
      )
    })
  }

  /** Asks it to end, and kills it when it does not. Idempotent. @param why - what is told as the reason of its end. */
  stop(why: string): void {
    if (this.#why !== '') return
    this.#why = why
    // What it holds open, or gave to a child of its own, keeps nobody waiting.
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.destroy()
    this.#child.kill('SIGTERM')
    this.#killTimer = setTimeout(() => this.#child.kill('SIGKILL'), killAfterMs)
    this.#child.unref()
  }

  #isFlood(bytes: number): boolean {
    const now = nowMs()
    if (now - this.#secondBeganMs > 1_000) {
      this.#secondBeganMs = now
      this.#bytes = 0
    }
    this.#bytes += bytes
    return this.#bytes > mostBytesASecond
  }
}
