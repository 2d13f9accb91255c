import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync } from 'node:fs'
import { platform } from 'node:os'

let pdeathsig: boolean | undefined

/** Whether children can be made to end with this process, whatever ends it. */
function canBind(): boolean {
  pdeathsig ??=
    platform() === 'linux' && spawnSync('setpriv', ['--version'], { stdio: 'ignore' }).status === 0
  return pdeathsig
}

/** A server process of a test. It ends with the test process at the latest. */
export class ServerProcess {
  private constructor(
    readonly child: ChildProcess,
    readonly pid: number,
    readonly logPath: string,
  ) {}

  /** @param logPath - receives stdout and stderr. */
  static start(command: string, args: readonly string[], logPath: string): ServerProcess {
    const log = openSync(logPath, 'a')
    const [file, argv] = canBind() ? ['setpriv', ['--pdeathsig', 'KILL', command, ...args]] : [command, args]
    const child = spawn(file, [...argv], { stdio: ['ignore', log, log] })
    closeSync(log)
    if (child.pid === undefined) throw new Error(`${command} could not be started`)
    return new ServerProcess(child, child.pid, logPath)
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  /** SIGSTOP: connections stay open, nothing answers. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP')
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT')
  }

  /** Sends the signal and waits for the end. A frozen process is ended all the same. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!this.running) return
    const exited = once(this.child, 'exit')
    this.child.kill(signal)
    this.child.kill('SIGCONT')
    await exited
  }
}
