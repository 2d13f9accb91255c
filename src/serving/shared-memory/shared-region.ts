import { close, closeSync, constants, fstatSync, openSync, read, readSync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import type { SharedPlace } from '../../runtime/infer.js'
import { countCopy } from '../../tensors/tensor-buffers.js'
import type { SharedMemoryRegion } from '../model-server.js'
import { ServingError } from '../../tensors/serving-error.js'

/** Where Linux keeps what `shm_open` opens, as files. */
const folder = '/dev/shm/'
/** So much is copied at once; more is copied beside the loop. */
const mostHereBytes = 64 * 1024

const readBeside = promisify(read)
const writeBeside = promisify(write)

/**
 * A part of a shared memory object of a client, read and written through a descriptor. It is never mapped: a client that cuts its object
 * short would end the process with SIGBUS then, and here gets an error.
 */
export class SharedRegion {
  #users = 0
  #isReleased = false

  private constructor(
    readonly entry: SharedMemoryRegion,
    readonly descriptor: number,
  ) {}

  /** @throws ServingError in the words of Triton, and why */
  static open(entry: SharedMemoryRegion): SharedRegion {
    const { name, key, offset, byteSize } = entry
    const descriptor = openObject(name, key)
    try {
      const stat = fstatSync(descriptor)
      if (!stat.isFile()) throw notOpened(key, 'it is no shared memory')
      if (byteSize === 0 || offset + byteSize > stat.size)
        throw new ServingError(
          'INVALID_ARG',
          `failed to register shared memory region '${name}': invalid args: ${byteSize} bytes from ${offset} on, of the ${stat.size} of '${key}'`,
        )
      return new SharedRegion(entry, descriptor)
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
  }

  /** @throws ServingError for a place that is not within the region */
  check({ offset, bytes }: SharedPlace): void {
    const { name, byteSize } = this.entry
    if (!(offset >= 0 && offset < byteSize))
      throw new ServingError('INVALID_ARG', `Invalid offset for shared memory region: '${name}'`)
    if (!(bytes >= 0 && offset + bytes <= byteSize))
      throw new ServingError('INVALID_ARG', `Invalid offset + byte size for shared memory region: '${name}'`)
  }

  /**
   * @param place - {@link check}ed.
   * @returns a copy, in a buffer of its own.
   * @throws ServingError where the object has become smaller
   */
  read({ offset, bytes }: SharedPlace): Promise<Uint8Array> {
    return this.#use(async (descriptor) => {
      const data = Buffer.allocUnsafeSlow(bytes)
      const from = this.entry.offset + offset
      for (let at = 0; at < bytes;) {
        const got =
          bytes <= mostHereBytes
            ? readSync(descriptor, data, at, bytes - at, from + at)
            : (await readBeside(descriptor, data, at, bytes - at, from + at)).bytesRead
        if (got === 0) throw this.#cutShort()
        at += got
      }
      countCopy(bytes)
      return data
    })
  }

  /**
   * @param place - {@link check}ed; `data` fits.
   * @throws ServingError where the object has become smaller, or its memory is full
   */
  write({ offset }: SharedPlace, data: Uint8Array): Promise<void> {
    return this.#use(async (descriptor) => {
      const from = this.entry.offset + offset
      // A write would make the object grow again.
      if (from + data.byteLength > fstatSync(descriptor).size) throw this.#cutShort()
      for (let at = 0; at < data.byteLength;) {
        const left = data.byteLength - at
        at +=
          left <= mostHereBytes
            ? writeSync(descriptor, data, at, left, from + at)
            : (await writeBeside(descriptor, data, at, left, from + at)).bytesWritten
      }
      countCopy(data.byteLength)
    })
  }

  /** Somebody will write here; until {@link leave} the descriptor is there. */
  enter(): void {
    this.#users += 1
  }

  leave(): void {
    this.#users -= 1
    this.#closeIfUnused()
  }

  /** The descriptor is closed once nobody uses it; nobody begins to. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#closeIfUnused()
  }

  async #use<T>(work: (descriptor: number) => Promise<T>): Promise<T> {
    this.enter()
    try {
      return await work(this.descriptor)
    } catch (error) {
      if (error instanceof ServingError) throw error
      const { code = String(error) } = error as NodeJS.ErrnoException
      throw new ServingError('INTERNAL', `shared memory region '${this.entry.name}': ${code}`, 'OTHER', error)
    } finally {
      this.leave()
    }
  }

  #closeIfUnused(): void {
    if (this.#isReleased && this.#users === 0) close(this.descriptor, () => undefined)
  }

  #cutShort(): ServingError {
    const { name, key } = this.entry
    return new ServingError(
      'INVALID_ARG',
      `shared memory region '${name}' has become smaller than it was registered: '${key}' has ${fstatSync(this.descriptor).size} bytes`,
    )
  }
}

/** As `shm_open` does: a name without a folder, and no link. @throws ServingError */
function openObject(name: string, key: string): number {
  const file = key.replace(/^\/+/, '')
  if (file === '' || file === '.' || file === '..' || /[/\0]/.test(file) || Buffer.byteLength(file) > 255)
    throw new ServingError(
      'INVALID_ARG',
      `cannot register shared memory region '${name}' - invalid shm key '${key}'`,
    )
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants
  try {
    return openSync(folder + file, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    throw notOpened(key, reasonOf(error), error)
  }
}

function notOpened(key: string, reason: string, cause?: unknown): ServingError {
  return new ServingError(
    'INTERNAL',
    `Unable to open shared memory region: '${key}': ${reason}`,
    'OTHER',
    cause,
  )
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is none of that key on the machine of the server, or in its container',
    EACCES: 'the user of the server may not read and write it',
    ELOOP: 'it is a link',
    EISDIR: 'it is a folder',
    ENXIO: 'it is no shared memory',
  }
  return reasons[code ?? ''] ?? message
}
