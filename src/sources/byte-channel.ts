import { rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { makeTemporaryFolder, socketBase } from '../lifecycle/temporary-folder.js'

/** Whoever receives the bytes of a channel provides the memory too. */
export interface ByteReader {
  /** Memory for the next bytes; must stay valid until the next call. */
  space(): Uint8Array
  /** @returns false to pause; `resume()` of the read end goes on. */
  filled(bytes: number): boolean
}

/**
 * A local socket pair: `writeEnd` becomes a child's stdout, and bytes arrive at `readEnd` in the reader's own memory.
 *
 * Node offers no reading into given memory for the pipes that `spawn` makes, only for sockets it connects itself; that saves a copy
 * and a third of the cost per frame (test/bench/sources.bench.ts). The socket's folder is readable by us alone and gone at once.
 */
export type ByteChannel = Readonly<{ writeEnd: Socket; readEnd: Socket }>

/** @throws an error of the system when there is no descriptor or no temporary folder for it. Nothing is left open then. */
export async function openByteChannel(reader: ByteReader): Promise<ByteChannel> {
  const folder = makeTemporaryFolder('gantry-', socketBase('gantry-XXXXXX/frames'))
  const path = join(folder, 'frames')
  const server = createServer({ pauseOnConnect: true })
  let readEnd: Socket | undefined
  try {
    await listening(server, path)
    const accepted = new Promise<Socket>((resolve, reject) => {
      server.once('connection', resolve)
      server.once('error', reject)
    })
    accepted.catch(() => undefined)
    readEnd = await connected(path, reader)
    return { writeEnd: await unlessClosed(readEnd, accepted), readEnd }
  } catch (error) {
    readEnd?.destroy()
    throw error
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Resolves once either end is gone. A broken channel is an end like any other; the child's stderr says why. */
export async function channelClosed(readEnd: Socket): Promise<void> {
  return new Promise((resolve) => {
    readEnd.once('close', () => resolve())
    readEnd.once('error', () => resolve())
  })
}

/** Without a descriptor for our side the kernel's connection is ended at once, and nobody is told why. */
async function unlessClosed(readEnd: Socket, accepted: Promise<Socket>): Promise<Socket> {
  const noMore = Object.assign(new Error('EMFILE: too many open files, accept'), {
    code: 'EMFILE',
    syscall: 'accept',
  })
  return new Promise((resolve, reject) => {
    const refuse = () => reject(noMore)
    readEnd.once('close', refuse).once('error', refuse)
    accepted.then(resolve, reject).finally(() => readEnd.off('close', refuse).off('error', refuse))
  })
}

async function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
}

async function connected(path: string, reader: ByteReader): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      path,
      onread: { buffer: () => reader.space(), callback: (bytes) => reader.filled(bytes) },
    })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.removeListener('error', reject)
      resolve(socket)
    })
  })
}
