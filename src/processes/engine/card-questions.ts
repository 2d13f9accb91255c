import type { CardAnswer } from '../../sources/decode-ways.js'
import { FfmpegFilters } from '../../sources/ffmpeg-filters.js'
import type { HardwareAccess } from '../../sources/source-deps.js'
import type { EngineOutput } from './protocol.js'

/** The way of decoders to the engine's GPU: control knows its memory, and which other engines are on it. */
export class CardQuestions {
  readonly #filters = new FfmpegFilters()
  readonly #open = new Map<number, (answer: CardAnswer) => void>()
  #asked = 0

  constructor(readonly out: Pick<EngineOutput, 'send'>) {}

  of(cameraId: string): HardwareAccess {
    return {
      scalesOnCard: () => this.#filters.has('scale_cuda'),
      askForCard: () => {
        const requestId = ++this.#asked
        const answer = new Promise<CardAnswer>((resolve) => this.#open.set(requestId, resolve))
        this.out.send({ type: 'wantsCard', requestId, cameraId })
        return answer
      },
      leaveCard: () => this.out.send({ type: 'leavesCard', cameraId }),
    }
  }

  answered(requestId: number, answer: CardAnswer): void {
    this.#open.get(requestId)?.(answer)
    this.#open.delete(requestId)
  }
}
