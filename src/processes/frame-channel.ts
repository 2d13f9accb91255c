import type { Socket } from 'node:net'
import type { FieldWriter } from './frame-fields.js'
import { FrameError, frameHeadBytes, frameKinds, FrameSplitter, writeFrameHead } from './frames.js'

/** Descriptor of the channel in a child; 3 is that of Node's. */
export const channelDescriptor = 4

/** A message, which is JSON on its way. */
export type Said<Type extends string = string> = Readonly<{ type: Type }>

export type ChannelListener = Readonly<{
  /** Absent: none are expected. */
  message?(message: Said): void
  /** Absent: none are expected. @throws FrameError */
  bytes?(body: Buffer): void
  /** What came is no frame, or not what was agreed on. Nothing is heard after it. */
  broken(problem: string): void
}>

/**
 * One end of a socket between two processes, over which frames go both ways: messages as JSON, and bytes as they are. What one side says
 * arrives in the order it was said.
 */
export class FrameChannel {
  /** The other side says no more, and all that it said was heard. */
  readonly ended: Promise<void>
  readonly #reader = new FrameSplitter((kind, body) => this.#heard(kind, body))

  constructor(
    readonly socket: Socket,
    readonly listener: ChannelListener,
  ) {
    this.ended = new Promise((resolve) => {
      socket.once('end', () => resolve())
      socket.once('close', () => resolve())
    })
    // Its end follows, and tells.
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  /** What was heard ends inside of a frame. */
  get isTorn(): boolean {
    return this.#reader.isTorn
  }

  /** Bytes that wait here, since the other side does not read. */
  get unsentBytes(): number {
    return this.socket.writableLength
  }

  /** Does nothing once the channel is over. @throws FrameError for what is too large. */
  send(message: Said): void {
    const json = JSON.stringify(message)
    const bodyBytes = Buffer.byteLength(json)
    const frame = Buffer.allocUnsafe(frameHeadBytes + bodyBytes)
    writeFrameHead(frame, frameKinds.message, bodyBytes)
    frame.write(json, frameHeadBytes)
    this.#write(frame)
  }

  /**
   * Sends bytes: fields, then what follows them in the body, which is not copied and must not change. Does nothing once the channel is over.
   *
   * @throws FrameError for what is too large.
   */
  sendBytes(fields: FieldWriter, ...rest: readonly Uint8Array[]): void {
    const frame = fields.frame(rest.reduce((sum, part) => sum + part.length, 0))
    if (rest.length === 0) return this.#write(frame)
    this.together(() => [frame, ...rest].forEach((part) => this.#write(part)))
  }

  /** What is sent meanwhile goes out in one write. */
  together(send: () => void): void {
    this.socket.cork()
    send()
    this.socket.uncork()
  }

  /** Says no more. Resolves when all that was said has left this process, or cannot any more. */
  end(): Promise<void> {
    return new Promise((resolve) => {
      this.socket.once('close', () => resolve())
      this.socket.end(() => resolve())
    })
  }

  close(): void {
    this.socket.destroy()
  }

  #write(bytes: Uint8Array): void {
    if (this.socket.writable) this.socket.write(bytes)
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.close()
      this.listener.broken(error.message)
    }
  }

  #heard(kind: number, body: Buffer): void {
    switch (kind) {
      case frameKinds.message:
        if (this.listener.message === undefined) throw new FrameError('a message where none is expected')
        return this.listener.message(messageOf(body))
      case frameKinds.bytes:
        if (this.listener.bytes === undefined) throw new FrameError('bytes where none are expected')
        return this.listener.bytes(body)
      default:
        throw new FrameError(`a frame of kind ${kind}`)
    }
  }
}

/** @throws FrameError */
function messageOf(body: Buffer): Said {
  const json = body.toString()
  try {
    const message: unknown = JSON.parse(json)
    if (isSaid(message)) return message
  } catch {
    // Told below.
  }
  throw new FrameError(`a message that is none: ${json.slice(0, 40)}`)
}

function isSaid(message: unknown): message is Said {
  return (
    typeof message === 'object' && message !== null && 'type' in message && typeof message.type === 'string'
  )
}
