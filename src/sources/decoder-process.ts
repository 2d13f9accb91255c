import { spawn, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { childEnvironment } from '../lifecycle/child-environment.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { LineSplitter } from './line-splitter.js'
import { readdirSync, readFileSync } from 'node:fs'

/** How long ffmpeg may take to say goodbye to the camera (RTSP TEARDOWN) before it is killed. */
const killAfterMs = 1_000

/** Lines of stderr kept for the error. */
const tailLines = 30

export type ProcessEnd = Readonly<{
  /** Last lines of stderr. */
  tail: readonly string[]
  /** It did not end when asked. */
  killed: boolean
  /** Of the program; null where a signal ended it, or it never began. */
  exitCode?: number | null
  /** Why the program could not be started; it is not there when its code is `ENOENT`. */
  unstarted: NodeJS.ErrnoException | undefined
}>

/**
 * One ffmpeg child, which dies with us.
 * Of a camera its exit code says nothing: one that froze ends with 0.
 */
export class DecoderProcess {
  readonly ended: Promise<ProcessEnd>
  readonly #child: ChildProcess
  readonly #tail: string[] = []
  #killTimer: NodeJS.Timeout | undefined
  #killed = false
  #cpuSeconds = 0

  /**
   * @param stdout - write end of a channel; the caller closes its own copy.
   * @param line - each line of stderr; always drained.
   * @throws what the system has against it at once, such as too little memory.
   */
  constructor(args: readonly string[], stdout: Socket, line: (text: string) => void) {
    this.#child = spawn(...withDeathSignal('ffmpeg', args), {
      stdio: ['ignore', stdout, 'pipe'],
      env: childEnvironment(),
    })
    const lines = new LineSplitter((text) => {
      if (this.#tail.push(text) > tailLines) this.#tail.shift()
      line(text)
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => lines.write(chunk))
    this.ended = new Promise((resolve) => {
      const end = (unstarted?: Error) => {
        clearTimeout(this.#killTimer)
        lines.end()
        resolve({ tail: this.#tail, killed: this.#killed, exitCode: this.#child.exitCode, unstarted })
      }
      // One that runs may have other errors, such as a signal that cannot be sent.
      this.#child.on('error', (error) => this.#child.pid === undefined && end(error))
      this.#child.once('close', () => end())
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** It does not go on by itself: it waits for a disk, or was stopped. */
  get isHeldUp(): boolean {
    return this.pid !== undefined && threadStates(this.pid).some((state) => state === 'D' || state === 'T')
  }

  /** Asks the child to end and kills it when it does not. Idempotent. */
  stop(): void {
    if (this.#killTimer !== undefined || this.#child.exitCode !== null) return
    this.cpuSeconds()
    this.#child.kill('SIGTERM')
    this.#killTimer = setTimeout(() => {
      this.#killed = true
      this.#child.kill('SIGKILL')
    }, killAfterMs)
  }

  /** Ends the child at once. Idempotent. */
  kill(): void {
    this.cpuSeconds()
    this.#child.kill('SIGKILL')
  }

  /** CPU time so far; the last known one after the end. */
  cpuSeconds(): number {
    const pid = this.#child.pid
    if (pid !== undefined) this.#cpuSeconds = Math.max(this.#cpuSeconds, processCpuSeconds(pid) ?? 0)
    return this.#cpuSeconds
  }
}

/** Of each thread, as `/proc` calls it; none where that is not there. */
function threadStates(pid: number): readonly string[] {
  const tasks = `/proc/${pid}/task`
  try {
    return readdirSync(tasks).map((task) => {
      const stat = readFileSync(`${tasks}/${task}/stat`, 'latin1')
      return stat.charAt(stat.lastIndexOf(')') + 2)
    })
  } catch {
    return []
  }
}

/** Units of `/proc/PID/stat`; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

/** CPU seconds a process and its ended children have used; undefined once it is gone or where there is no `/proc`. */
export function processCpuSeconds(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces; fields are counted after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    return Number.isFinite(ticks) ? ticks / ticksPerSecond : undefined
  } catch {
    return undefined
  }
}
