import type { Socket } from 'node:net'
import { redactText } from '../config/redact.js'
import type { CameraConfig } from '../config/camera.js'
import type { DecodeMode } from '../vision/camera-state.js'
import type { SentPictureSource } from '../vision/frame-source.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { unlessAborted } from '../lifecycle/delay.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { channelClosed, openByteChannel } from './byte-channel.js'
import { afterGap, longestKeyWaitMs, withAllPictures } from './decode-policy.js'
import { parseDecoderLine, type DecoderLine } from './decoder-log.js'
import { cannotBeWoundBack, endingOf } from './decoder-ending.js'
import type { DecoderMemory } from './decoder-memory.js'
import { DecoderMessages } from './decoder-messages.js'
import { openInput, type DecodedLocation, type Gate } from './decoder-input.js'
import { DecoderProcess, type ProcessEnd } from './decoder-process.js'
import type { CardAnswer } from './decode-ways.js'
import { errorsIn, failureBy, type Failure } from './failure-reason.js'
import { decoderArguments, type DecoderInput } from './ffmpeg-command.js'
import { FilePlaying, isPaused } from './file-playing.js'
import { FrameAssembler } from './frame-assembler.js'
import { contentReasons } from './http-content.js'
import { keepsKeyFrames } from './key-frame-keeper.js'
import { PicturePairing } from './picture-pairing.js'
import { PictureGate } from './picture-gate.js'
import type { ToldAspect } from './pixel-aspect.js'
import { RtspGate } from './rtsp-gate.js'
import { SentPictures, type SizeLine } from './sent-pictures.js'
import { secretsOf, withoutSecrets } from './secrets.js'
import type { Session, SessionEnd, SessionListener, SignsOfLife } from './session.js'
import type { SourceDeps } from './source-deps.js'
import { SuspectTracker } from './suspect-tracker.js'
import { ToldStream } from './told-stream.js'

export type DecoderSessionOptions = Readonly<{
  input: DecodedLocation
  camera: CameraConfig
  memory: DecoderMemory
  deps: Pick<SourceDeps, 'format' | 'pool' | 'log' | 'samplingPhase' | 'addresses' | 'hardware'>
}>

/** One run of ffmpeg for one camera: pixels from stdout, facts from stderr, both handed on as pictures. */
export class DecoderSession implements Session {
  readonly ended: Promise<SessionEnd>
  readonly #assembler: FrameAssembler
  readonly #pairing: PicturePairing
  readonly #suspects = new SuspectTracker()
  readonly #messages: DecoderMessages
  readonly #secrets: readonly string[]
  #process: DecoderProcess | undefined
  #readEnd: Socket | undefined
  #gate: Gate | undefined
  readonly #cut = new AbortController()
  #restartReason: string | undefined
  readonly #sent: SentPictures
  #keyMs: number | null | undefined
  readonly #mode: DecodeMode
  readonly #told: ToldStream
  /** Absent: it is no file. */
  readonly #file: FilePlaying | undefined
  #gavePicture = false
  /** The picture that came last, where it has a time. */
  #lastShown: Readonly<{ ptsMs: number; atMs: number }> | undefined
  /** Room on a card was asked for. */
  #askedForCard = false
  /** When the last key frame was decoded: by the clock of the stream, or ours where it has none. */
  #lastKeyMs: number | undefined
  /** Packets of pictures that had come when they were counted last. */
  #mediaPackets = 0

  constructor(
    readonly options: DecoderSessionOptions,
    readonly listener: SessionListener,
  ) {
    this.#mode = options.memory.decode.mode
    this.#told = new ToldStream(options, listener)
    const { input, camera, memory } = options
    if (input.kind === 'file')
      this.#file = new FilePlaying({
        loop: camera.loop,
        memory,
        beginAnew: (reason) => this.#beginsAnew(reason),
      })
    this.#secrets = options.input.kind === 'file' ? [] : secretsOf(options.input.url)
    this.#messages = new DecoderMessages({
      log: options.deps.log,
      listener,
      repeated: options.memory.repeated,
      clean: (text) => this.#clean(text),
    })
    this.#sent = new SentPictures(options.camera, (why) => listener.warning('pixel_aspect', this.#clean(why)))
    this.#pairing = new PicturePairing((rgbHwc, info) => listener.picture(rgbHwc, info))
    this.#assembler = new FrameAssembler(options.deps.pool, (rgbHwc) => this.#pairing.pixels(rgbHwc))
    this.ended = this.#run()
  }

  stop(): void {
    this.#cut.abort()
    this.#process?.stop()
  }

  cpuSeconds(): number {
    return this.#process?.cpuSeconds() ?? 0
  }

  /** A file that is shown once goes on as it is: it would begin anew. */
  cardHasRoom(): void {
    if (!this.options.memory.ways.isRefused || !this.#told.restartable) return
    if (this.#restartReason !== undefined || this.#process === undefined) return
    this.#beginsAnew('the GPU has room by now: decoding there')
  }

  /** Where the pictures of a camera are chosen by `auto`, a silence also ends it: key frames are too few then, and all are decoded. */
  waitsForKey(silentMs: number): boolean {
    if (this.#mode !== 'keyframes') return this.#filePlays(silentMs)
    const packets = this.#packets()
    const mediaComes = packets === undefined ? undefined : packets > this.#mediaPackets
    this.#mediaPackets = packets ?? 0
    const { memory, camera } = this.options
    if (mediaComes === false) return false
    if (camera.decode !== 'auto')
      return silentMs < longestKeyWaitMs(memory.decode.gapsMs, mediaComes) || this.#filePlays(silentMs)
    if (this.#restartReason === undefined) this.#beginAs(withAllPictures(memory.decode))
    return true
  }

  signs(): SignsOfLife {
    return this.#gate instanceof RtspGate ? this.#gate.signs : { life: 'unknown' }
  }

  sentPicture(): SentPictureSource | undefined {
    const { input, camera } = this.options
    if (camera.videoTrack !== 1) return undefined
    if (this.#gate instanceof PictureGate) return this.#gate.sentPicture
    if (this.#gate instanceof RtspGate) {
      const key = this.#gate.keyFrame
      return key && { kind: 'packets', sdp: key.sdp, packets: key.packets, capturedAtMs: key.atMs }
    }
    const shown = this.#lastShown
    if (input.kind !== 'file' || shown === undefined) return undefined
    const { path } = input
    return { kind: 'file', path, atS: this.#file?.placeS(shown.ptsMs) ?? 0, capturedAtMs: shown.atMs }
  }

  #filePlays(silentMs: number): boolean {
    return (
      this.#file !== undefined && this.#process !== undefined && isPaused(silentMs, this.#process.isHeldUp)
    )
  }

  async #run(): Promise<SessionEnd> {
    try {
      await this.#chooseWay()
      const input = await this.#wayIn()
      if ('reason' in input) return { kind: 'failed', ...input }
      const end = await this.#decode(input)
      this.#messages.end()
      return this.#conclude(end)
    } catch (error) {
      const limit = systemLimit(error)
      if (limit !== undefined) return { kind: 'failed', ...failureBy(limit) }
      return { kind: 'failed', reason: redactText((error as Error).message), retry: 'normal' }
    } finally {
      await this.#gate?.close()
      this.#readEnd?.destroy()
      if (this.#askedForCard) this.options.deps.hardware?.leaveCard()
      this.#assembler.release()
      const held = this.#pairing.release()
      if (held !== null) this.options.deps.pool.give(held)
    }
  }

  async #wayIn(): Promise<DecoderInput | Failure> {
    const { input, camera, memory, deps } = this.options
    const opened = await openInput({
      location: input,
      camera,
      addresses: deps.addresses,
      logins: memory.logins,
      content: memory.content === 'snapshot' ? 'media' : memory.content,
      keepsKeyFrames: keepsKeyFrames(camera),
      mistaken: (content) => {
        const hasFailed = memory.content !== 'media'
        memory.content = content
        if (!hasFailed) this.#beginsAnew(contentReasons[content])
      },
      playing: () => this.listener.opened?.(),
      behind: (detail) => this.listener.warning('decoder_behind', detail),
      signal: this.#cut.signal,
    })
    if ('reason' in opened) return opened
    this.#gate = opened.gate
    return opened.input
  }

  /** @throws what the session was cut off with. */
  async #chooseWay(): Promise<void> {
    const { ways } = this.options.memory
    const { hardware } = this.options.deps
    if (hardware === undefined) return
    const before = ways.now.reason
    this.#askedForCard = ways.wantsCard
    const asked = ways.wantsCard
      ? Promise.all([hardware.askForCard(), hardware.scalesOnCard()])
      : Promise.resolve([undefined, false] as [undefined, boolean])
    const [card, scalesOnCard] = await unlessAborted<[CardAnswer | undefined, boolean]>(
      asked,
      this.#cut.signal,
    )
    ways.choose(card, scalesOnCard)
    const refusal = card?.refusal
    if (refusal !== undefined && refusal !== before) this.#fellBack(`${refusal}: decoding in software`)
  }

  async #decode(input: DecoderInput): Promise<ProcessEnd | undefined> {
    const channel = await openByteChannel({
      space: () => this.#assembler.space(),
      filled: (bytes) => {
        this.#assembler.filled(bytes)
        return !this.#pairing.holding
      },
    })
    this.#readEnd = channel.readEnd
    if (this.#cut.signal.aborted) {
      channel.writeEnd.destroy()
      return undefined
    }
    const drained = channelClosed(channel.readEnd)
    try {
      this.#process = new DecoderProcess(this.#arguments(input), channel.writeEnd, (text) => this.#line(text))
    } finally {
      // The child has its own copy; ours would keep the channel open after its end.
      channel.writeEnd.destroy()
    }
    const end = await this.#process.ended
    await drained
    if (end.killed) this.listener.warning('decoder_killed', 'ffmpeg did not end when asked and was killed')
    return end
  }

  #arguments(input: DecoderInput): readonly string[] {
    const { camera, memory, deps } = this.options
    const played = memory.once === true ? { ...camera, loop: false } : camera
    return decoderArguments(played, input, deps.format, memory.ways.now.way, {
      phase: deps.samplingPhase,
      mode: this.#mode,
    })
  }

  #line(text: string): void {
    const line = this.#meant(parseDecoderLine(text))
    switch (line.kind) {
      case 'picture':
        return this.#picture(line.ptsMs)
      case 'size':
        return this.#resized(line)
      case 'pixels':
        return this.#reshaped(line.aspect)
      case 'unbelieved':
        return this.#sent.refuse(line.text)
      case 'key':
        this.#keyMs = line.ptsMs
        this.#suspects.key(line.ptsMs, nowMs())
        if (this.options.camera.decode !== 'full') this.#keyFrame(line.ptsMs ?? nowMs())
        return
      case 'damage':
        if (this.#suspects.damage(line.text, nowMs())) this.#messages.damage(line.text)
        if (!this.#gavePicture) this.#file?.damagedBefore(nowMs())
        return
      case 'note':
        this.#suspects.note(line.text)
        this.#messages.note(line.text)
        return
      case 'input':
        return this.#opened(line.format)
      case 'length':
        return this.#file?.lasts(line.seconds)
      case 'stream':
        this.#told.video(line)
        if (this.#told.facts.codec === 'h264') this.#suspects.showsWholeOnly()
        return
      case 'chosen':
        return this.#told.chosen()
      case 'noHardware':
        return this.#goesOnWithout(this.options.memory.ways.foundNone())
      case 'message':
        return this.#messages.message(line.level, line.text)
      case 'chatter':
        return
      default:
        line satisfies never
    }
  }

  /** From version 7 on ffmpeg keeps to the shape of pixels that it saw first, until the stream is opened anew. */
  #resized(line: SizeLine): void {
    const { input } = this.options
    const isSquare = (this.#sent.now?.pixelAspect ?? 1) === 1
    if (this.#gavePicture && !isSquare && input.kind !== 'file')
      this.#beginsAnew('the size of the picture changed, and maybe the shape of its pixels')
    this.#sent.size(line)
  }

  #reshaped(aspect: ToldAspect): void {
    const { ways } = this.options.memory
    if (ways.now.way.by !== 'cuda-scaled') return this.#sent.follow(aspect)
    if (this.#sent.differ(aspect)) this.#beginsAnew(ways.shapeChanges())
  }

  #meant(line: DecoderLine): DecoderLine {
    if (!(this.#gate instanceof RtspGate) || (line.kind !== 'picture' && line.kind !== 'key')) return line
    return { ...line, ptsMs: this.#gate.shown(line.ptsMs) }
  }

  #opened(format: string): void {
    this.#suspects.opened()
    if (this.#gate instanceof PictureGate) this.#suspects.picturesStandAlone()
    this.listener.opened?.()
    this.#file?.opened(format, nowMs())
  }

  #keyFrame(atMs: number): void {
    const before = this.#lastKeyMs
    this.#lastKeyMs = atMs
    this.#mediaPackets = this.#packets() ?? 0
    if (before === undefined || this.#restartReason !== undefined) return
    const { memory, camera } = this.options
    const state = afterGap(memory.decode, atMs - before, camera, this.#told.facts)
    if (state.mode !== this.#mode) return this.#beginAs(state)
    memory.decode = state
    this.#told.tell()
  }

  /** A decoder does what it was started for: another mode takes another one. */
  #beginAs(state: DecoderMemory['decode']): void {
    this.options.memory.decode = state
    this.#beginsAnew(
      state.mode === 'keyframes' ? 'key frames alone are enough: decoding those' : 'decoding every picture',
    )
  }

  #beginsAnew(reason: string): void {
    this.#restartReason = reason
    this.#process?.stop()
  }

  #packets(): number | undefined {
    return this.#gate instanceof RtspGate ? this.#gate.mediaPackets : undefined
  }

  #picture(ptsMs: number | null): void {
    // It is told before; where it is not, no frame is, and the watchdog acts.
    const sent = this.#sent.now
    if (sent === undefined) return
    this.#gavePicture = true
    if (this.#file !== undefined && ptsMs !== null) this.#lastShown = { ptsMs, atMs: wallMs() }
    if (ptsMs !== this.#keyMs) this.#suspects.picture(ptsMs)
    const info = { ptsMs, sent, suspect: this.#suspects.suspect }
    if (this.#pairing.info(info)) this.#readEnd?.resume()
  }

  #clean(text: string): string {
    return withoutSecrets(redactText(this.#gate?.plain(text) ?? text), this.#secrets)
  }

  #conclude(end: ProcessEnd | undefined): SessionEnd {
    if (this.#restartReason !== undefined) return { kind: 'again', reason: this.#restartReason }
    if (end === undefined) return { kind: 'failed', reason: 'stopped', retry: 'normal' }
    const detour = end.unstarted === undefined ? this.#detour(end) : undefined
    if (detour !== undefined) return { kind: 'again', reason: detour }
    const { input, memory } = this.options
    if (input.kind === 'file' && cannotBeWoundBack(end)) memory.once = true
    const problem = this.#gate?.problem
    const ending = endingOf(end, {
      kind: input.kind,
      wasCut: this.#cut.signal.aborted || (problem !== undefined && this.#gate instanceof PictureGate),
      gavePicture: this.#gavePicture,
      isDamaged: this.#suspects.wasDamaged,
      lacking: this.#told.lacking,
      problem,
    })
    return ending.kind === 'failed' ? { ...ending, reason: this.#clean(ending.reason) } : ending
  }

  /** @returns why the next decoder is to go another way; `undefined` where hardware is not to blame. */
  #detour({ tail }: ProcessEnd): string | undefined {
    const wasOpen = this.#told.facts.codec !== undefined && this.#gate?.problem === undefined
    const isFruitless = wasOpen && !this.#gavePicture
    const detour = this.options.memory.ways.ended({ errors: errorsIn(tail), isFruitless })
    if (detour?.warning !== undefined) this.#fellBack(detour.warning)
    return detour?.reason
  }

  #goesOnWithout(reason: string | undefined): void {
    if (reason === undefined) return
    this.#fellBack(`${reason}: decoding in software`)
    this.#told.tell()
  }

  #fellBack(reason: string): void {
    this.listener.warning('hwaccel_fallback', reason)
  }
}
