import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { createSource, isPushSource } from '../../sources/create-source.js'
import { MainStream } from '../../sources/main-picture.js'
import type { CameraStatus } from '../../vision/camera-state.js'
import type { Frame } from '../../vision/frame.js'
import type { FrameSource, SourceListener, SourceWarning } from '../../vision/frame-source.js'
import { CameraFeed } from './camera-feed.js'
import type { CameraUnit } from './camera-unit.js'
import type { CardQuestions } from './card-questions.js'
import type { EngineModel } from './engine-model.js'
import { mainPictureAtMostMs, type EngineSetup } from './protocol.js'
import { phaseOf } from './sampling-places.js'

/** Main streams opened at once: whoever asks for many snapshots holds up no camera that connects. */
const mostMainStreams = 4
/** Longest that a second source beside the one that works is waited for. */
const besideAtMostMs = 10_000

export type CameraSourcesHost = Readonly<{
  setup: Pick<EngineSetup, 'maxConcurrentConnects' | 'mediaRoot' | 'cameraNetworks'>
  cards: CardQuestions
  frame(unit: CameraUnit, model: EngineModel, frame: Frame): void
  status(unit: CameraUnit, status: CameraStatus): void
  warning(unit: CameraUnit, kind: SourceWarning, detail: string): void
  log: Log
}>

type OpenFeed = CameraFeed & { source: FrameSource }

/** Opens what cameras deliver, in the format of the model that is to analyse it. */
export class CameraSources {
  readonly #gate: ConnectGate
  readonly #mainGate = new ConnectGate(mostMainStreams)
  readonly #addresses: Readonly<{ all: AddressPolicy; loopbackClosed: AddressPolicy }>
  /** Those that are to take the place of others, and what ends waiting for them. */
  readonly #coming = new Map<OpenFeed, () => void>()
  #closed = false

  constructor(readonly host: CameraSourcesHost) {
    const { maxConcurrentConnects, cameraNetworks } = host.setup
    this.#gate = new ConnectGate(maxConcurrentConnects)
    this.#addresses = {
      all: new AddressPolicy(cameraNetworks),
      loopbackClosed: new AddressPolicy({ ...cameraNetworks, loopbackClosed: true }),
    }
  }

  /** The camera's source, not started; a look at its URL may take its time. */
  async open(unit: CameraUnit, model: EngineModel): Promise<OpenFeed> {
    const { camera, place, loopbackClosed } = unit
    const { setup, cards, log } = this.host
    const feed = new CameraFeed(model)
    const source = await createSource(camera, {
      format: model.info.format,
      pool: model.pool,
      listener: this.#listener(unit, feed),
      nextSeq: () => unit.nextSeq(),
      log: log.child({ cameraId: camera.id }),
      mediaRoot: setup.mediaRoot,
      addresses: this.#addressesFor(loopbackClosed.analysed),
      connectGate: this.#gate,
      samplingPhase: phaseOf(place),
      hardware: cards.of(camera.id),
    })
    return Object.assign(feed, { source })
  }

  /** Makes it the camera's, and starts it. */
  begin(unit: CameraUnit, feed: OpenFeed): void {
    feed.isIn = true
    unit.feed = feed
    feed.source.start()
  }

  mainStream({ camera, loopbackClosed }: CameraUnit): MainStream | undefined {
    if (camera.analyseUrl === undefined || !camera.enabled) return undefined
    const { mediaRoot } = this.host.setup
    const addresses = this.#addressesFor(loopbackClosed.main)
    return new MainStream({
      camera,
      deps: { mediaRoot, addresses, connectGate: this.#mainGate },
      withinMs: mainPictureAtMostMs,
    })
  }

  /**
   * The camera's frames go to another model from now on. Where that takes frames of another format a second source is opened beside the one
   * that works, and takes its place with its first frame. A camera that gives none to a second one is let go first.
   */
  async goOver(unit: CameraUnit, model: EngineModel): Promise<void> {
    const { feed } = unit
    if (feed?.source === undefined || feed.model === model) return
    const { state } = feed.source.status
    // Nothing comes of it until the camera is changed, which opens it anew.
    if (model.takesFramesOf(feed.model) || state === 'disabled' || state === 'failed') {
      feed.model = model
      unit.goesOver(model.info.format)
      return
    }
    const next = await this.open(unit, model)
    if (this.#closed) return
    if (isPushSource(next.source)) {
      this.#changesFormat(unit, model)
      this.begin(unit, next)
      return feed.source.stop()
    }
    if (state === 'live' && (await this.#takesPlace(unit, feed.source, next))) return
    await Promise.all([next.source.stop(), feed.source.stop()])
    const alone = await this.open(unit, model)
    if (this.#closed) return
    this.#changesFormat(unit, model)
    const settled = this.#settled(alone)
    this.begin(unit, alone)
    await settled
  }

  /** No source takes the place of another any more. */
  async close(): Promise<void> {
    this.#closed = true
    const coming = [...this.#coming]
    for (const [, end] of coming) end()
    await Promise.all(coming.map(([{ source }]) => source.stop()))
  }

  /** @returns whether it gave a frame, and is the camera's. */
  async #takesPlace(unit: CameraUnit, before: FrameSource, next: OpenFeed): Promise<boolean> {
    next.onFirst = () => {
      void before.stop()
      next.isIn = true
      unit.feed = next
      this.#changesFormat(unit, next.model)
      if (next.told) this.host.status(unit, next.told)
    }
    const settled = this.#settled(next)
    next.source.start()
    await settled
    next.onFirst = undefined
    // A second decoder may be near its end; the listener hears no more of it.
    if (next.isIn) await before.stop()
    return next.isIn
  }

  #changesFormat(unit: CameraUnit, model: EngineModel): void {
    unit.goesOver(model.info.format)
    unit.checks.sizeChanges()
  }

  /** Resolves with the first frame, when none is to be expected, or when it has been waited for long enough. */
  async #settled(feed: OpenFeed): Promise<void> {
    await atMost(
      besideAtMostMs,
      new Promise<void>((resolve) => {
        this.#coming.set(feed, resolve)
        feed.onTold = ({ state }) => {
          if (state !== 'connecting' && state !== 'live') resolve()
        }
        const take = feed.onFirst
        feed.onFirst = () => {
          feed.onFirst = undefined
          take?.()
          resolve()
        }
      }),
    )
    feed.onTold = undefined
    this.#coming.delete(feed)
  }

  #listener(unit: CameraUnit, feed: CameraFeed): SourceListener {
    return {
      frame: (frame) => {
        feed.onFirst?.()
        if (feed.isIn) this.host.frame(unit, feed.model, frame)
        else feed.model.pool.give(frame.rgbHwc)
      },
      status: (status) => {
        feed.told = status
        feed.onTold?.(status)
        if (feed.isIn) this.host.status(unit, status)
      },
      warning: (kind, detail) => this.host.warning(unit, kind, detail),
    }
  }

  #addressesFor(loopbackClosed: boolean): AddressPolicy {
    return loopbackClosed ? this.#addresses.loopbackClosed : this.#addresses.all
  }
}
