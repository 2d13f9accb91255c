import { randomUUID } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type ReadInto = Readonly<{ space(): Uint8Array; filled(bytes: number): void }>

/**
 * A connected pair of local sockets whose near end reads straight into buffers of ours.
 *
 * A child's own stdout pipe would hand out a fresh buffer for each read, to be copied into the frame: twice the cost of a 1.2 MB frame.
 * Give `far` to the child as its stdout and destroy it here afterwards.
 */
export async function pipePair(target: ReadInto): Promise<{ near: Socket; far: Socket }> {
  const path = join(tmpdir(), `gantry-${process.pid}-${randomUUID()}.sock`)
  const server = createServer({ pauseOnConnect: true })
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    const far = new Promise<Socket>((resolve) => server.once('connection', resolve))
    const near = connect({
      path,
      onread: {
        buffer: () => target.space(),
        callback: (bytes) => {
          target.filled(bytes)
          return true
        },
      },
    })
    near.pause()
    await new Promise<void>((resolve, reject) => near.once('connect', resolve).once('error', reject))
    return { near, far: await far }
  } finally {
    server.close()
    rmSync(path, { force: true })
  }
}
