import type { FrameFormat } from '../vision/frame.js'
import type { FramePool } from '../vision/frame-pool.js'
import type { SourceListener } from '../vision/frame-source.js'
import type { Log } from '../lifecycle/log.js'
import type { AddressPolicy } from '../lifecycle/address-policy.js'
import type { ConnectGate } from './connect-gate.js'
import type { CardAnswer } from './decode-ways.js'
import type { SamplingPhase } from './sampling.js'

/** A camera's way to hardware that decodes. */
export type HardwareAccess = Readonly<{
  /** Whether the ffmpeg of this machine scales pictures on an NVIDIA card. */
  scalesOnCard(): Promise<boolean>
  /** Asks for room on the card of the engine, for a decoder that is about to start. */
  askForCard(): Promise<CardAnswer>
  /** The decoder that asked has ended. */
  leaveCard(): void
}>

/** What every source is given by its engine. */
export type SourceDeps = Readonly<{
  format: FrameFormat
  pool: FramePool
  listener: SourceListener
  /** Number for the next frame of this camera. */
  nextSeq(): number
  log: Log
  /** Folder that file cameras lie in; absolute. */
  mediaRoot: string
  /** Where network cameras may be opened. */
  addresses: AddressPolicy
  /** Shared by all cameras of the engine. */
  connectGate: ConnectGate
  /** Apart from those of the other cameras, so that their pictures do not all come at once; any moment where it is absent. */
  samplingPhase?: SamplingPhase
  /** Absent: all is decoded in software, as by whoever wants a single picture. */
  hardware?: HardwareAccess
  /** In `[0, 1)`, for jitter. */
  random?: () => number
}>
