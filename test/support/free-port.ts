import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const locks = join(tmpdir(), 'gantry-test-ports')
const held: string[] = []
process.once('exit', () => {
  for (const lock of held) rmSync(lock, { force: true })
})
/** Below the ports that the kernel gives to clients, and to servers that ask for any. */
const range = { first: 10_000, last: 31_999 }

/**
 * A loopback TCP port that nobody listens on and that no other test of this machine is given while this process lives.
 *
 * A port that was merely free a moment ago may be another's by the time a service has started: two tests then talk to one service.
 */
export async function freePort(): Promise<number> {
  mkdirSync(locks, { recursive: true })
  for (;;) {
    const port = range.first + Math.floor(Math.random() * (range.last - range.first + 1))
    if (take(port) && (await isFree(port))) return port
  }
}

/** Whether it is this process' now. What a process held that has ended may be taken. */
function take(port: number): boolean {
  const lock = join(locks, String(port))
  try {
    const file = openSync(lock, 'wx')
    writeSync(file, String(process.pid))
    closeSync(file)
    held.push(lock)
    return true
  } catch {
    if (!isLeft(lock)) return false
    rmSync(lock, { force: true })
    return false
  }
}

function isLeft(lock: string): boolean {
  try {
    const pid = Number(readFileSync(lock, 'utf8'))
    if (pid > 0) process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
