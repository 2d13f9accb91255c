import { readFileSync } from 'node:fs'
import { open, readFile, rm } from 'node:fs/promises'

/** A process, told from a later one with its number by when it began. */
type Holder = Readonly<{ pid: number; began: string }>

/** Keeps a second run away from a folder, on one machine. One that was killed holds nothing any more. */
export class RunLock {
  private constructor(readonly path: string) {}

  /**
   * @param taken - makes the error for a folder at which another run is at work.
   * @throws that error
   */
  static async take(path: string, taken: (pid: number) => Error): Promise<RunLock> {
    const me: Holder = { pid: process.pid, began: beganAt(process.pid) ?? '' }
    for (let tries = 0; ; tries += 1) {
      try {
        const file = await open(path, 'wx')
        await file.writeFile(JSON.stringify(me)).finally(() => file.close())
        return new RunLock(path)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || tries > 2) throw error
      }
      const holder = await holderIn(path)
      if (holder !== undefined && isAlive(holder)) throw taken(holder.pid)
      await rm(path, { force: true })
    }
  }

  /** Idempotent. */
  async release(): Promise<void> {
    await rm(this.path, { force: true })
  }
}

/** Undefined for one that was killed while it wrote. */
async function holderIn(path: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Holder
  } catch {
    return undefined
  }
}

function isAlive({ pid, began }: Holder): boolean {
  // In a container every run may have the same number.
  if (pid === process.pid) return false
  if (began !== '') return beganAt(pid) === began
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Clock ticks between the start of the machine and that of a process; undefined where there is none, or no `/proc`. */
function beganAt(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces; fields are counted after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
