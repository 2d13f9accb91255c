import { Writable } from 'node:stream'
import { pino } from 'pino'
import { cameraSchema, type CameraConfig } from '../../src/config/camera.js'
import type { CameraNetworks } from '../../src/config/camera-networks.js'
import { FramePool } from '../../src/vision/frame-pool.js'
import type { CameraState, CameraStatus } from '../../src/vision/camera-state.js'
import type { FrameSource, SourceListener } from '../../src/vision/frame-source.js'
import { frameBytes, type Frame, type FrameFormat } from '../../src/vision/frame.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { AddressPolicy, type HostLookup } from '../../src/lifecycle/address-policy.js'
import { ConnectGate } from '../../src/sources/connect-gate.js'
import { createSource } from '../../src/sources/create-source.js'
import { FfmpegFilters } from '../../src/sources/ffmpeg-filters.js'
import type { SamplingPhase } from '../../src/sources/sampling.js'
import type { HardwareAccess, SourceDeps } from '../../src/sources/source-deps.js'

export type SeenFrame = Omit<Frame, 'rgbHwc'> & { readonly pixels: Uint8Array | null }
export type SeenStatus = CameraStatus & { readonly atMs: number }
export type SeenWarning = Readonly<{ kind: string; detail: string; atMs: number }>

export type WatchOptions = Readonly<{
  format?: FrameFormat
  mediaRoot?: string
  networks?: CameraNetworks
  lookUp?: HostLookup
  gate?: ConnectGate
  pool?: FramePool
  random?: () => number
  hardware?: HardwareAccess
  samplingPhase?: SamplingPhase
  /** Keep a copy of the pixels of each frame. */
  keepPixels?: boolean
}>

/** Card 0 for every decoder that asks, with the ffmpeg that is there. */
export function unboundedCard(): HardwareAccess {
  const filters = new FfmpegFilters()
  return {
    scalesOnCard: () => filters.has('scale_cuda'),
    askForCard: async () => ({ device: 0, isSeen: false }),
    leaveCard: () => undefined,
  }
}

const smallFormat: FrameFormat = { input: { widthPx: 160, heightPx: 160 }, align: 'center' }

/** A source under test with everything it says, and promises for what is expected of it. */
export class WatchedSource implements SourceListener {
  readonly frames: SeenFrame[] = []
  readonly statuses: SeenStatus[] = []
  readonly warnings: SeenWarning[] = []
  readonly logLines: string[] = []
  readonly camera: CameraConfig
  readonly pool: FramePool
  readonly #deps: SourceDeps
  #source: FrameSource | undefined
  readonly #checks = new Set<() => void>()
  #seq = 0

  private constructor(
    camera: Readonly<{ url: string } & Record<string, unknown>>,
    readonly options: WatchOptions = {},
  ) {
    const format = options.format ?? smallFormat
    this.camera = cameraSchema.parse({ id: 'cam', ...camera })
    this.pool = options.pool ?? new FramePool(frameBytes(format), 4)
    const sink = new Writable({
      write: (chunk: Buffer, _, done) => {
        this.logLines.push(chunk.toString())
        done()
      },
    })
    this.#deps = {
      format,
      pool: this.pool,
      listener: this,
      nextSeq: () => ++this.#seq,
      // No redaction here: what reaches the log must be clean already.
      log: pino({ level: 'debug' }, sink),
      mediaRoot: options.mediaRoot ?? '/',
      addresses: new AddressPolicy(options.networks, options.lookUp),
      connectGate: options.gate ?? new ConnectGate(4),
      hardware: options.hardware ?? unboundedCard(),
      ...(options.samplingPhase === undefined ? {} : { samplingPhase: options.samplingPhase }),
      ...(options.random === undefined ? {} : { random: options.random }),
    }
  }

  static async start(
    camera: Readonly<{ url: string } & Record<string, unknown>>,
    options: WatchOptions = {},
  ): Promise<WatchedSource> {
    const watched = new WatchedSource(camera, options)
    watched.#source = await createSource(watched.camera, watched.#deps)
    watched.#source.start()
    return watched
  }

  get source(): FrameSource {
    if (this.#source === undefined) throw new Error('not started')
    return this.#source
  }

  frame(frame: Frame): void {
    const { rgbHwc, ...rest } = frame
    this.frames.push({ ...rest, pixels: this.options.keepPixels ? new Uint8Array(rgbHwc.slice(0)) : null })
    this.pool.give(rgbHwc)
    this.#check()
  }

  status(status: CameraStatus): void {
    this.statuses.push({ ...status, atMs: nowMs() })
    this.#check()
  }

  warning(kind: string, detail: string): void {
    this.warnings.push({ kind, detail, atMs: nowMs() })
    this.#check()
  }

  /** Waits until the predicate holds; it is asked after each thing the source says. */
  async until(what: string, holds: () => boolean, withinMs = 10_000): Promise<void> {
    if (holds()) return
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#checks.delete(check)
        const last = this.statuses.at(-1)
        reject(
          new Error(
            `not within ${withinMs} ms: ${what}; state ${last?.state} (${last?.reason}), ${this.frames.length} frames`,
          ),
        )
      }, withinMs)
      const check = () => {
        if (!holds()) return
        clearTimeout(timer)
        this.#checks.delete(check)
        resolve()
      }
      this.#checks.add(check)
    })
  }

  async untilFrames(count: number, withinMs?: number): Promise<readonly SeenFrame[]> {
    await this.until(`${count} frames`, () => this.frames.length >= count, withinMs)
    return this.frames
  }

  /** The first status of that state from index `from` on. */
  async untilState(state: CameraState, withinMs?: number, from = 0): Promise<SeenStatus> {
    const find = () => this.statuses.slice(from).find((status) => status.state === state)
    await this.until(`state ${state}`, () => find() !== undefined, withinMs)
    const status = find()
    if (status === undefined) throw new Error('checked above')
    return status
  }

  #check(): void {
    for (const check of [...this.#checks]) check()
  }
}
