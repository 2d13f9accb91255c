import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { until } from './until.js'

/** The built command. */
export const mainScript = join(import.meta.dirname, '../../dist/cli/main.js')

/** What `npm start` runs: set-up, which has nothing to do where all is there, then `gantry demo`. */
export const startScript = join(import.meta.dirname, '../../scripts/start.mjs')

/** Arguments with which any number of them run side by side and print a line of JSON. */
export const freely = (storePath: string): string[] => [
  ...['--http-port', '0', '--metrics-port', '0', '--set', 'server.grpcPort=0'],
  ...['--set', `store.path=${storePath}`, '--json'],
]

/** `gantry` as a person starts it: in a process group of its own, which Ctrl-C is sent to. */
export class GantryProcess {
  stdout = ''
  stderr = ''
  readonly child: ChildProcess

  constructor(
    args: readonly string[],
    { script = mainScript, env = {} }: Readonly<{ script?: string; env?: NodeJS.ProcessEnv }> = {},
  ) {
    this.child = spawn(process.execPath, [script, ...args], {
      detached: true,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()))
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  /** Exit code, or the signal that ended it. */
  async ended(): Promise<number | string> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close')
    return this.child.exitCode ?? this.child.signalCode ?? ''
  }

  async httpUrl(): Promise<string> {
    await until('the line that tells the URL', () => this.stdout.includes('\n'), 30_000)
    return (JSON.parse(this.stdout) as { httpUrl: string }).httpUrl
  }

  /** Ends the whole group: a child that outlives its parent holds the pipes that `ended` waits for. */
  async kill(): Promise<void> {
    try {
      process.kill(-this.pid, 'SIGKILL')
    } catch {
      // It is gone already.
    }
    await this.ended()
  }
}
