import type { CardAnswer } from '../../sources/decode-ways.js'
import { FfmpegFilters } from '../../sources/ffmpeg-filters.js'
import type { HardwareAccess } from '../../sources/source-deps.js'
import type { EngineOutput } from './protocol.js'

/** The way of decoders to the engine's GPU: control knows its memory, and which other engines are on it. */
export class CardQuestions {
  readonly #filters = new FfmpegFilters()
  readonly #open = new Map<number, (answer: CardAnswer) => void>()
  /** By camera: its decoders that have asked, of which there are two while one takes the place of another. They are one to control. */
  readonly #holders = new Map<string, Set<symbol>>()
  #asked = 0

  constructor(readonly out: Pick<EngineOutput, 'send'>) {}

  /** The way of one source of the camera. */
  of(cameraId: string): HardwareAccess {
    const own = Symbol(cameraId)
    return {
      scalesOnCard: () => this.#filters.has('scale_cuda'),
      askForCard: () => {
        const requestId = ++this.#asked
        const answer = new Promise<CardAnswer>((resolve) => this.#open.set(requestId, resolve))
        this.#holders.set(cameraId, (this.#holders.get(cameraId) ?? new Set()).add(own))
        this.out.send({ type: 'wantsCard', requestId, cameraId })
        return answer
      },
      leaveCard: () => {
        const holders = this.#holders.get(cameraId)
        holders?.delete(own)
        if (holders !== undefined && holders.size > 0) return
        this.#holders.delete(cameraId)
        this.out.send({ type: 'leavesCard', cameraId })
      },
    }
  }

  answered(requestId: number, answer: CardAnswer): void {
    this.#open.get(requestId)?.(answer)
    this.#open.delete(requestId)
  }
}
