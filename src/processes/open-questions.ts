import { RemoteError, type ErrorRecord, type GantryError } from '../errors.js'

type Question = Readonly<{
  resolve(value: unknown): void
  reject(error: Error): void
  timer: NodeJS.Timeout
}>

/** What a process was asked and has not answered. */
export class OpenQuestions {
  readonly #open = new Map<number, Question>()
  #lastId = 0

  /** @param unavailable - the error of a question that is not answered. */
  constructor(readonly unavailable: (reason: string) => GantryError) {}

  /** @param send - asks it, by its number. @returns the answer. @throws `unavailable` after `atMostMs`; what it is refused with */
  ask(atMostMs: number, send: (requestId: number) => void): Promise<unknown> {
    const requestId = ++this.#lastId
    return new Promise((resolve, reject) => {
      const late = () => this.#settle(requestId)?.reject(this.unavailable(`no answer within ${atMostMs} ms`))
      this.#open.set(requestId, { resolve, reject, timer: setTimeout(late, atMostMs) })
      send(requestId)
    })
  }

  /** Does nothing where the answer comes too late. */
  answered(requestId: number, value: unknown): void {
    this.#settle(requestId)?.resolve(value)
  }

  refused(requestId: number, error: ErrorRecord): void {
    this.#settle(requestId)?.reject(new RemoteError(error))
  }

  /** Nobody will answer. */
  abandon(reason: string): void {
    for (const requestId of [...this.#open.keys()]) this.#settle(requestId)?.reject(this.unavailable(reason))
  }

  #settle(requestId: number): Question | undefined {
    const question = this.#open.get(requestId)
    clearTimeout(question?.timer)
    this.#open.delete(requestId)
    return question
  }
}
