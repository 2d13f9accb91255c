import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { delay } from '../lifecycle/delay.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { LineSplitter } from './decoder-log.js'
import { pipePair, type ReadInto } from './pipe-pair.js'

/** How long ffmpeg may take to say goodbye to the camera after `q`, and to end after SIGTERM. A frozen one ignores both. */
const politeMs = 300
const termMs = 700
const ticksPerSecond = 100

export type DecoderExit = Readonly<{ code: number | null; signal: NodeJS.Signals | null }>

export type DecoderCallbacks = Readonly<{
  onLine(line: string): void
  onExit(exit: DecoderExit): void
}>

/** One ffmpeg. Its pictures go into `target`, its log to `onLine`; it is asked, told and killed in that order. */
export class DecoderProcess {
  #ended = false
  #stopping = false

  private constructor(
    readonly child: ChildProcess,
    readonly near: Socket,
    readonly callbacks: DecoderCallbacks,
  ) {}

  /** @throws when no process can be started at all, e.g. because ffmpeg is not installed. */
  static async start(
    args: readonly string[],
    target: ReadInto,
    callbacks: DecoderCallbacks,
    ffmpeg = 'ffmpeg',
  ): Promise<DecoderProcess> {
    const { near, far } = await pipePair(target)
    const child = spawn(...withDeathSignal(ffmpeg, args), { stdio: ['pipe', far, 'pipe'] })
    far.destroy()
    const decoder = new DecoderProcess(child, near, callbacks)
    decoder.#listen()
    near.resume()
    return decoder
  }

  get pid(): number | undefined {
    return this.child.pid
  }

  cpuSeconds(): number {
    try {
      const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8')
      const [user, system] = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 13)
      return (Number(user) + Number(system)) / ticksPerSecond
    } catch {
      return 0
    }
  }

  /** Idempotent. Resolves when the process is gone: at once for a dead one, within about a second for a frozen one. */
  async stop(): Promise<void> {
    if (this.#ended) return
    const gone = new AbortController()
    this.child.once('exit', () => gone.abort())
    if (!this.#stopping) {
      this.#stopping = true
      this.child.stdin?.write('q')
      if (await delay(politeMs, gone.signal)) this.child.kill('SIGTERM')
      if (await delay(termMs, gone.signal)) this.child.kill('SIGKILL')
    }
    if (!this.#ended)
      await new Promise<void>((resolve) => gone.signal.addEventListener('abort', () => resolve()))
  }

  #listen(): void {
    const lines = new LineSplitter((line) => this.callbacks.onLine(line))
    this.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => lines.push(chunk))
    this.child.stdin?.on('error', () => undefined)
    this.near.on('error', () => undefined)
    this.child.on('error', (error) => {
      this.callbacks.onLine(`[error] ${error.message}`)
      this.#exited({ code: null, signal: null })
    })
    // `close` comes after the log has been read to its end, so that the last words are known when the end is told.
    this.child.on('close', (code, signal) => this.#exited({ code, signal }))
  }

  #exited(exit: DecoderExit): void {
    if (this.#ended) return
    this.#ended = true
    this.near.destroy()
    this.callbacks.onExit(exit)
  }
}
