import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Figures } from '../bench.js'
import type { Context, Window } from './measure.js'
import type { Job, Place } from './plan.js'

/** A job for `child.ts`. `standing`: names of measurements that have been taken. */
export type ToChild = Readonly<{ job: Job; context: Context; standing: readonly string[] }>

export type Told = Readonly<{
  type: 'told'
  place: Place
  unit: string
  figures: Figures
  windows: readonly Window[]
}>

/** How a job ended. */
export type Outcome = Readonly<{ type: 'done' } | { type: 'not here' | 'failed'; reason: string }>

export type ToBench = Told | Outcome

/** Measures in a process that is started anew when it ends. */
export class Measurer {
  #child: ChildProcess | undefined

  /** @param scratch - folder for what that process, and what it starts, leaves behind while it runs. */
  constructor(readonly scratch: string) {}

  /** @returns how it ended; one that takes longer than it may is ended with all that it started. */
  async measure(order: ToChild, withinMs: number, told: (figures: Told) => void): Promise<Outcome> {
    const child = this.#child?.connected ? this.#child : this.#start()
    this.#child = child
    return new Promise((resolve) => {
      let tooLong = false
      const timer = setTimeout(() => {
        tooLong = true
        void this.stop()
      }, withinMs)
      const end = (outcome: Outcome) => {
        clearTimeout(timer)
        child.off('message', heard).off('error', failed).off('exit', exited)
        resolve(outcome)
      }
      const heard = (message: ToBench) => (message.type === 'told' ? told(message) : end(message))
      const failed = (error: Error) => end({ type: 'failed', reason: error.message })
      const exited = (code: number | null, signal: string | null) => {
        const ended = `its process ended with ${signal ?? code ?? 'nothing'}`
        endGroup(child)
        const late = `it took more than ${Math.round(withinMs / 1e3)} s`
        end({ type: 'failed', reason: tooLong ? late : ended })
      }
      child.on('message', heard).on('error', failed).on('exit', exited)
      child.send(order)
    })
  }

  /** Ends the process and all that it started. */
  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    endGroup(child)
    await exited
  }

  #start(): ChildProcess {
    const script = fileURLToPath(new URL('./child.ts', import.meta.url))
    return fork(script, [this.scratch], {
      // A group of its own, that can be ended as one.
      detached: true,
      // Standard output is for results.
      stdio: ['ignore', 2, 2, 'ipc'],
    })
  }
}

/** A process and what it started, which outlives it where it ends by itself. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}
