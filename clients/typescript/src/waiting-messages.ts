import type { StreamMessage } from './messages.js'

/** Pictures that wait for a reader. They are large, and a live view wants the newest. */
const mostPictures = 32

/** Messages that wait for whoever reads, oldest first. */
export class WaitingMessages {
  #messages: StreamMessage[] = []
  #pictures = 0
  /** Pictures that gave way to newer ones. */
  picturesLeftOut = 0

  /** Messages without pictures. */
  get length(): number {
    return this.#messages.length - this.#pictures
  }

  push(message: StreamMessage): void {
    this.#messages.push(message)
    if (message.type !== 'picture') return
    this.#pictures += 1
    if (this.#pictures <= mostPictures) return
    const oldest = this.#messages.findIndex(({ type }) => type === 'picture')
    this.#messages.splice(oldest, 1)
    this.#pictures -= 1
    this.picturesLeftOut += 1
  }

  shift(): StreamMessage | undefined {
    const message = this.#messages.shift()
    if (message?.type === 'picture') this.#pictures -= 1
    return message
  }
}
