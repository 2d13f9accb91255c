import type { Address } from './address.js'
import { GantryClientError, optionError } from './client-error.js'
import type { DetectionsMessage, GapMessage, PictureMessage, StreamMessage, Wants } from './messages.js'
import type { ServiceClock } from './service-clock.js'
import type { OpenSocket } from './socket.js'
import { StreamConnection, type StreamState } from './stream-connection.js'
import { WaitingMessages } from './waiting-messages.js'

export type ConnectOptions = Address &
  Wants &
  Readonly<{
    /** Begins after the message with this cursor: that of {@link GantryStream.cursor} before a restart of this program. */
    resumeAfter?: string | undefined
    /**
     * Results that wait for the `for await` at most; then the stream pauses until half of them are read, and goes on where it was. What the
     * service does not keep so long is told by a `gap`.
     */
    maxWaiting?: number | undefined
    /** With one of the next three the messages come by calls, and cannot be read by `for await`. */
    onDetections?: ((message: DetectionsMessage) => void) | undefined
    onPicture?: ((message: PictureMessage) => void) | undefined
    onGap?: ((message: GapMessage) => void) | undefined
    /** Each change of the connection. Without it, trouble is written to the console, once until it is over. */
    onState?: ((state: StreamState) => void) | undefined
  }>

const usualWaiting = 1_000

/** Live results of a service: `for await (const message of stream)`. It ends by {@link close}, a `break`, or an error that will not pass. */
export class GantryStream implements AsyncIterable<StreamMessage> {
  readonly #connection: StreamConnection
  readonly #options: ConnectOptions
  readonly #maxWaiting: number
  readonly #waiting = new WaitingMessages()
  #wake: (() => void) | undefined
  #cursor: string | undefined
  #isTold = false

  /** @throws GantryClientError for an option that is wrong. */
  constructor(options: ConnectOptions, open: OpenSocket) {
    const { url, token, cameras, labels, minScore, detections, frames, frameCameras, resumeAfter } = options
    this.#options = options
    this.#maxWaiting = options.maxWaiting ?? usualWaiting
    if (!Number.isInteger(this.#maxWaiting) || this.#maxWaiting < 2)
      throw optionError('maxWaiting: it is no whole number of 2 or more', 'Leave it out for 1,000.')
    this.#cursor = resumeAfter
    this.#connection = new StreamConnection(
      {
        state: (state) => this.#became(state),
        message: (message) => {
          // A refusal is the error of the stream as well.
          if (message.type !== 'error') this.#take(message)
        },
        picture: (picture) => this.#take(picture),
      },
      {
        url,
        token,
        open,
        wants: { cameras, labels, minScore, detections, frames, frameCameras },
        resumes: true,
        resumeAfter,
        whenRefused: 'end',
      },
    )
    // Handlers may speak of the stream that is being made here.
    queueMicrotask(() => {
      if (this.state.state !== 'closed') this.#connection.start()
    })
  }

  /** Of the last result that was handled: what a program keeps to go on there after a restart of its own. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  get state(): StreamState {
    return this.#connection.state
  }

  /** Wall time of the service, whatever this computer's clock says. */
  get clock(): ServiceClock {
    return this.#connection.clock
  }

  /** Pictures that were left out since this reader was behind. */
  get picturesLeftOut(): number {
    return this.#waiting.picturesLeftOut
  }

  /** Asks for something else from now on. */
  subscribe(wants: Wants): void {
    this.#connection.subscribe(wants)
  }

  /** Ends at once; what waits is not read any more. */
  close(): void {
    this.#connection.stop()
  }

  /** @throws GantryClientError what ended the stream. */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamMessage, void, undefined> {
    if (this.#isPushed)
      throw optionError(
        'this stream calls its handlers',
        'Leave out onDetections, onPicture and onGap to read it.',
      )
    try {
      for (;;) {
        const { state, error } = this.state
        const message = state === 'closed' && error === undefined ? undefined : this.#waiting.shift()
        if (message !== undefined) {
          if (this.#waiting.length <= this.#maxWaiting / 2) this.#connection.resume()
          yield message
          this.#handled(message)
        } else if (state !== 'closed') await new Promise<void>((resolve) => (this.#wake = resolve))
        else if (error === undefined) return
        else throw error
      }
    } finally {
      this.close()
    }
  }

  get #isPushed(): boolean {
    const { onDetections, onPicture, onGap } = this.#options
    return onDetections !== undefined || onPicture !== undefined || onGap !== undefined
  }

  #take(message: StreamMessage): void {
    if (this.#isPushed) return this.#call(message)
    this.#waiting.push(message)
    if (this.#waiting.length >= this.#maxWaiting) this.#connection.pause()
    this.#wake?.()
  }

  #call(message: StreamMessage): void {
    const { onDetections, onPicture, onGap } = this.#options
    if (message.type === 'detections') onDetections?.(message)
    else if (message.type === 'picture') onPicture?.(message)
    else onGap?.(message)
    this.#handled(message)
  }

  #handled(message: StreamMessage): void {
    if (message.type === 'detections') this.#cursor = message.cursor
  }

  #became(state: StreamState): void {
    this.#wake?.()
    if (this.#options.onState) this.#options.onState(state)
    else this.#tell(state)
  }

  /** Who does not look at the state would else wait in silence for a service that is not there. */
  #tell({ state, trouble, error }: StreamState): void {
    if (state === 'closed') {
      // eslint-disable-next-line no-console -- nobody reads this stream, who would get the error
      if (error !== undefined && this.#isPushed) console.error(`gantry: ${error.message}. ${error.hint}`)
    } else if (trouble === undefined) this.#isTold = false
    else if (!this.#isTold && state === 'waiting') {
      this.#isTold = true
      const why =
        error instanceof GantryClientError ? `${error.message}. ${error.hint}` : 'nothing comes any more.'
      // eslint-disable-next-line no-console -- a program that wants no words gives onState
      console.warn(`gantry: ${why} Trying again.`)
    }
  }
}
