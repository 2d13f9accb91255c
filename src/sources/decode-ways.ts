import type { CameraConfig } from '../config/camera.js'
import { hardwareFailure, needsTenBits } from './hardware-failure.js'

/** Where a stream is decoded and its pictures are scaled, as `DecodePlace` says. */
export type DecodeWay =
  | Readonly<{ by: 'software' | 'vaapi' | 'auto' }>
  | Readonly<{ by: 'cuda-scaled'; device: number }>
  /** `tenBit`: the pictures have ten bits a sample. */
  | Readonly<{ by: 'cuda'; device: number; tenBit: boolean }>

/** A way, and why it is not the one that the settings ask for; empty where it is. */
export type ChosenWay = Readonly<{ way: DecodeWay; reason: string }>

/** What control says to a decoder that asks for room on the card of its engine. */
export type CardAnswer = Readonly<{
  /** As CUDA counts. */
  device: number
  /** Whether anything tells of such a card. */
  isSeen: boolean
  /** Why a decoder is not to take any of its memory; absent where it may. */
  refusal?: string
}>

/** How a run of a decoder ended. */
export type RunEnd = Readonly<{
  /** What it said last that was wrong. */
  errors: readonly string[]
  /** The stream was open, nothing was wrong with the camera, and no picture came. */
  isFruitless: boolean
}>

/** Why the next run goes another way. */
export type Detour = Readonly<{
  reason: string
  /** What to warn of; absent where less of the hardware is not used. */
  warning?: string
}>

/** So many runs in a row without a picture are blamed on the hardware. */
const fruitlessRuns = 2

export const inSoftware: DecodeWay = { by: 'software' }

/**
 * Which way the decoders of a camera take, one after the other: on the card with scaling, on the card, in software. What failed is not
 * tried again as long as the camera is not changed; whether the card has room is asked for each of them.
 */
export class DecodeWays {
  #scalingFault = ''
  #fault = ''
  #tenBit = false
  #fruitless = 0
  #now: ChosenWay = { way: inSoftware, reason: '' }
  #isRefused = false

  constructor(readonly camera: Pick<CameraConfig, 'hwaccel' | 'region'>) {}

  /** That of the decoder that runs, or ran last. */
  get now(): ChosenWay {
    return this.#now
  }

  /** Whether it is in software for want of room on a card alone. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  /** Whether room on a card is to be asked for. */
  get wantsCard(): boolean {
    const { hwaccel } = this.camera
    return this.#fault === '' && (hwaccel === 'cuda' || hwaccel === 'auto')
  }

  /**
   * For a decoder that begins.
   *
   * @param card - `undefined` where none was asked for.
   */
  choose(card: CardAnswer | undefined, scalesOnCard: boolean): ChosenWay {
    this.#now = this.#choice(card, scalesOnCard)
    this.#isRefused = this.wantsCard && card?.refusal !== undefined
    return this.#now
  }

  #choice(card: CardAnswer | undefined, scalesOnCard: boolean): ChosenWay {
    const { hwaccel, region } = this.camera
    if (hwaccel === 'none' || this.#fault !== '') return { way: inSoftware, reason: this.#fault }
    if (hwaccel === 'vaapi') return { way: { by: hwaccel }, reason: '' }
    if (card === undefined) return { way: inSoftware, reason: '' }
    if (card.refusal !== undefined) return { way: inSoftware, reason: card.refusal }
    if (hwaccel === 'auto' && !card.isSeen) return { way: { by: hwaccel }, reason: '' }
    const { device } = card
    const reason = region ? 'the region is cut out by the processor' : this.#scalingFault
    if (reason !== '') return { way: { by: 'cuda', device, tenBit: this.#tenBit }, reason }
    if (scalesOnCard) return { way: { by: 'cuda-scaled', device }, reason: '' }
    const lacking = 'this ffmpeg has no filter scale_cuda'
    return { way: { by: 'cuda', device, tenBit: this.#tenBit }, reason: lacking }
  }

  /**
   * The decoder said that no hardware decodes the stream. It goes on in software, but for pictures that it was to leave on a card.
   *
   * @returns why; `undefined` where it ends instead.
   */
  foundNone(): string | undefined {
    const { by } = this.#now.way
    if (by !== 'auto' && by !== 'vaapi') return undefined
    this.#fault = `no hardware decodes it by ${by}`
    this.#now = { way: inSoftware, reason: this.#fault }
    return this.#fault
  }

  /** Its pixels have another shape in the middle of the stream, which scaling on a card does not follow. @returns why it goes another way */
  shapeChanges(): string {
    return (this.#scalingFault = 'the shape of its pixels changes, which only the processor follows')
  }

  /**
   * A run is over.
   *
   * @returns what is to begin at once, another way; `undefined` where the hardware is not to blame.
   */
  ended({ errors, isFruitless }: RunEnd): Detour | undefined {
    const { way } = this.#now
    if (way.by === 'software') return undefined
    if (way.by === 'cuda' && !way.tenBit && needsTenBits(errors)) {
      this.#tenBit = true
      return { reason: 'its pictures have ten bits a sample' }
    }
    this.#fruitless = isFruitless ? this.#fruitless + 1 : 0
    const gpu = 'device' in way ? `GPU ${way.device}` : `the ${way.by} device`
    const found = hardwareFailure(errors, gpu)
    if (found === undefined && this.#fruitless < fruitlessRuns) return undefined
    this.#fruitless = 0
    const { reason, ofScaling } = found ?? { reason: `no picture came by ${gpu}`, ofScaling: true }
    if (ofScaling && way.by === 'cuda-scaled') {
      this.#scalingFault = reason
      return { reason, warning: `${reason}: scaling in software` }
    }
    this.#fault = reason
    return { reason, warning: `${reason}: decoding in software` }
  }
}
