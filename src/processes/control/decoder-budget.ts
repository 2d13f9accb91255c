import { cardOfDevice } from '../../backends/onnxruntime/nvidia-cards.js'
import { nowMs } from '../../lifecycle/clock.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import type { GpuFigures } from '../../metrics/gpu-metrics.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { CardAnswer } from '../../sources/decode-ways.js'
import { DecoderCost } from './decoder-cost.js'
import type { GpuWatch } from './gpu-watch.js'

/** Of a card's memory, left free whatever decoders may take: models need more for a moment. */
const freeShare = 0.05
/** Longest that a decoder waits for a reading of its card. */
const readingAtMostMs = 5_000
/** Until the memory of a decoder that was started is there, and has been read. */
const settledAfterMs = 10_000
/** A decoder that was told of room is told again no sooner. */
const toldAgainMs = 60_000
/** Longest that one that was told is waited for until it asks. */
const asksWithinMs = 10_000

/** A decoder that asks, or is on a card. */
export type DecoderPlace = Readonly<{ engine: number; cameraId: string; device: number }>
type Held = DecoderPlace & Readonly<{ sinceMs: number }>

/** How many decoders a card holds: as many as their share does, and what is free, less a rest. */
export function decodersThatFit(
  card: Readonly<{ share: number; totalBytes: number; freeBytes: number; eachBytes: number }>,
): number {
  const { share, totalBytes, freeBytes, eachBytes } = card
  const room = Math.min(share * totalBytes, freeBytes - freeShare * totalBytes)
  return Math.max(0, Math.floor(room / eachBytes))
}

export type DecoderBudgetDeps = Readonly<{
  /** Of a card's memory that decoders may take together, 0-1. */
  share: number
  gpus: Pick<GpuWatch, 'gpus' | 'readingAfter'>
  isLive: (cameraId: string) => boolean
  metrics: Pick<ServiceMetrics, 'gpuDecoders' | 'gpuDecoderBytes' | 'gpuDecoderLimit'>
  log: Log
  /** From one reading of the cards to the next. */
  intervalMs: number
  /** A decoder that was refused may ask again: it begins anew for that. */
  hasRoom: (place: DecoderPlace) => void
  clock?: () => number
}>

/**
 * Which decoders may take memory of a card: as many as a share of it holds, by what one was measured to take, and no more than is free.
 * Where nothing tells the memory of a card nothing is bounded.
 */
export class DecoderBudget {
  readonly #held = new Map<string, Held>()
  /** Those that wait for their answer. */
  readonly #asking = new Map<string, symbol>()
  /** By device: when a decoder on it ended last. */
  readonly #leftMs = new Map<number, number>()
  /** Those that run in software for want of room, the longest first. */
  readonly #refused = new Map<string, DecoderPlace>()
  /** When each was last told that there is room. */
  readonly #toldMs = new Map<string, number>()
  /** The one that was told last, until it has asked. */
  #told: Readonly<{ key: string; sinceMs: number }> | undefined
  readonly #costs = new Map<number, DecoderCost>()
  /** By device: what there is. */
  readonly #totals = new Map<number, number>()
  readonly #untold = new Set<number>()
  readonly #clock: () => number
  /** Since when the memory of cards has changed for other reasons than decoders, last. */
  #changedMs = -Infinity

  constructor(readonly deps: DecoderBudgetDeps) {
    this.#clock = deps.clock ?? nowMs
  }

  /** Whether the decoder may start on the card, by figures from after the last change of an engine. Never rejects. */
  async ask(place: DecoderPlace): Promise<CardAnswer> {
    const key = keyOf(place.engine, place.cameraId)
    const own = Symbol(key)
    this.#asking.set(key, own)
    await atMost(readingAtMostMs, this.deps.gpus.readingAfter(this.#changedMs))
    const { device } = place
    if (this.#asking.get(key) !== own) return { device, isSeen: false, refusal: 'it has ended' }
    this.#asking.delete(key)
    return this.#answer(place, key)
  }

  /** The decoder has ended. */
  left({ engine, cameraId }: Omit<DecoderPlace, 'device'>): void {
    const key = keyOf(engine, cameraId)
    this.#asking.delete(key)
    this.#refused.delete(key)
    const held = this.#held.get(key)
    if (held === undefined) return
    this.#held.delete(key)
    this.#leftMs.set(held.device, this.#clock())
    this.#costOf(held.device).forget()
  }

  /** An engine is ready: its models have taken memory. */
  engineReady(): void {
    this.#changedMs = this.#clock()
    for (const cost of this.#costs.values()) cost.forget()
  }

  /** An engine is gone, and its decoders with it. */
  engineGone(engine: number): void {
    for (const held of [...this.#held.values()]) if (held.engine === engine) this.left(held)
    for (const keys of [this.#asking, this.#refused])
      for (const key of [...keys.keys()]) if (key.startsWith(keyOf(engine, ''))) keys.delete(key)
    this.engineReady()
  }

  /** To be called now and then: tells decoders that were refused once there is room, one after another. */
  look(): void {
    const now = this.#clock()
    for (const [key, toldMs] of this.#toldMs) if (now - toldMs >= toldAgainMs) this.#toldMs.delete(key)
    if (now - (this.#told?.sinceMs ?? -Infinity) >= asksWithinMs) this.#told = undefined
    // What an engine takes that is ready since may not have been read.
    const isKnown = now - this.#changedMs >= this.#settledMs
    if (this.#refused.size === 0 || this.#told !== undefined || !isKnown) return
    const next = [...this.#refused].find(([key, place]) => !this.#toldMs.has(key) && this.#hasRoom(place))
    if (next === undefined) return
    const [key, place] = next
    this.#toldMs.set(key, now)
    this.#told = { key, sinceMs: now }
    this.deps.hasRoom(place)
  }

  #hasRoom({ device }: DecoderPlace): boolean {
    const figures = this.#figures(device)
    const total = figures?.memoryTotalBytes ?? this.#totals.get(device)
    const used = figures?.memoryUsedBytes ?? undefined
    return (
      total !== undefined && this.#refusal(device, this.#costOf(device).eachBytes, total, used) === undefined
    )
  }

  /** Takes what is known by now, for whoever reads the metrics. */
  measure(): void {
    const { gpuDecoders, gpuDecoderBytes, gpuDecoderLimit } = this.deps.metrics
    const devices = new Set([...this.#costs.keys(), ...[...this.#held.values()].map(({ device }) => device)])
    for (const device of devices) {
      const label = { device: String(device) }
      const decoders = this.#on(device).length
      gpuDecoders.set(label, decoders)
      gpuDecoderBytes.set(label, decoders * this.#costOf(device).eachBytes)
      const total = this.#totals.get(device)
      if (total !== undefined) gpuDecoderLimit.set(label, this.deps.share * total)
    }
  }

  #answer(place: DecoderPlace, key: string): CardAnswer {
    const { device } = place
    const figures = this.#figures(device)
    const answer = { device, isSeen: this.deps.gpus.gpus.length > 0 }
    this.#held.delete(key)
    this.#refused.delete(key)
    if (this.#told?.key === key) this.#told = undefined
    // While nothing tells what is in use, their share holds all the same.
    const total = figures?.memoryTotalBytes ?? this.#totals.get(device)
    const used = figures?.memoryUsedBytes ?? undefined
    if (total === undefined) {
      this.#tellUntold(device, answer.isSeen)
      this.#held.set(key, { ...place, sinceMs: this.#clock() })
      return answer
    }
    this.#totals.set(device, total)
    const cost = this.#costOf(device)
    const refusal = this.#refusal(device, cost.eachBytes, total, used)
    if (refusal !== undefined) {
      if (this.deps.share > 0) this.#refused.set(key, place)
      return { ...answer, refusal }
    }
    const isSettled =
      this.#young(device) === 0 && this.#clock() - (this.#leftMs.get(device) ?? -Infinity) >= this.#settledMs
    cost.began(place.cameraId, isSettled ? used : undefined)
    this.#held.set(key, { ...place, sinceMs: this.#clock() })
    return answer
  }

  #refusal(device: number, eachBytes: number, total: number, used?: number): string | undefined {
    const { share } = this.deps
    const decoders = this.#on(device).length
    const each = mib(eachBytes)
    if (share === 0) return 'decoding.gpuMemoryShare is 0'
    const inAll = { share, totalBytes: total, freeBytes: Infinity, eachBytes }
    if (decoders + 1 > decodersThatFit(inAll))
      return `decoders may take ${gib(share * total)} GiB of GPU ${device} (decoding.gpuMemoryShare), and ${decoders} of ${each} MiB are there`
    const free = used === undefined ? Infinity : total - used - this.#young(device) * eachBytes
    if (decodersThatFit({ share: 1, totalBytes: total, freeBytes: free, eachBytes }) < 1)
      return `GPU ${device} has ${gib(Math.max(0, free))} of ${gib(total)} GiB left, and a decoder takes ${each} MiB`
    return undefined
  }

  #on(device: number): readonly Held[] {
    return [...this.#held.values()].filter((held) => held.device === device)
  }

  /** Decoders whose memory the last reading may not have. */
  #young(device: number): number {
    return this.#on(device).filter(({ sinceMs }) => this.#clock() - sinceMs < this.#settledMs).length
  }

  get #settledMs(): number {
    return settledAfterMs + 2 * this.deps.intervalMs
  }

  #figures(device: number): GpuFigures | undefined {
    return cardOfDevice(device, this.deps.gpus.gpus)
  }

  #costOf(device: number): DecoderCost {
    const known = this.#costs.get(device)
    if (known !== undefined) return known
    const { isLive, log } = this.deps
    const cost = new DecoderCost({
      settledMs: this.#settledMs,
      isLive,
      usedBytes: () => this.#figures(device)?.memoryUsedBytes ?? undefined,
      measured: (eachBytes) =>
        log.info(
          { gpu: device, mib: Math.round(eachBytes / 1024 ** 2) },
          'memory that a decoder takes of the GPU',
        ),
    })
    this.#costs.set(device, cost)
    return cost
  }

  #tellUntold(gpu: number, isSeen: boolean): void {
    if (!isSeen || this.#untold.has(gpu)) return
    this.#untold.add(gpu)
    this.deps.log.warn({ gpu }, 'the memory of the GPU is not told: decoders on it are not bounded')
  }
}

function keyOf(engine: number, cameraId: string): string {
  return `${engine}/${cameraId}`
}

function gib(bytes: number): string {
  return (bytes / 1024 ** 3).toFixed(1)
}

function mib(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0)
}
