import type { CameraConfig } from '../../config/camera.js'
import type { CameraNetworks } from '../../config/camera-networks.js'
import type { InferenceConfig } from '../../config/inference.js'
import type { ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import type { SnapshotFacts } from '../../cameras/snapshot-facts.js'
import type { CameraBeat, EngineResult } from '../../cameras/engine-report.js'
import type { DetectorInfo, ScoreFault } from '../../detector/camera-detector.js'
import type { CameraShapes } from '../../detector/input-size.js'
import type { StepFailures } from '../../detector/later-steps.js'
import type { ErrorRecord } from '../../errors.js'
import type { FrameCounts } from '../../vision/accounting.js'
import type { CardAnswer } from '../../sources/decode-ways.js'
import type { CameraStatus } from '../../vision/camera-state.js'
import type { SourceWarning } from '../../vision/frame-source.js'
import type { Base64 } from '../../lifecycle/base64.js'
import type { LogSettings } from '../../lifecycle/log.js'
import type { SizesInUse } from '../../runtime/batch-sizes.js'
import type { CountedStatistics } from '../../runtime/counted-statistics.js'
import type { ComparedFrames, ComparisonLimits } from './model-comparison.js'

/** What an engine needs to know once, at its start. Paths are absolute. */
export type EngineSetup = Readonly<{
  index: number
  /** That of the ensemble first. */
  repositories: readonly string[]
  ensemble: string
  inference: InferenceConfig
  /** GPU for the providers that take one by its number. */
  deviceId: number
  /** Whether steps may run code of the repository. */
  allowJsBackends: boolean
  maxConcurrentConnects: number
  mediaRoot: string
  cameraNetworks: CameraNetworks
  log: LogSettings
  /**
   * It is tried whether the GPU runs the detector: not on the CPU, and without a word in the log but of errors until it is ready. Its cameras
   * come later, or never.
   */
  isTrial?: boolean
}>

/** A camera as an engine takes it on; numbering goes on at `firstSeq`, so that it never repeats over an engine's death. */
export type CameraAssignment = Readonly<{
  camera: CameraConfig
  firstSeq: number
  /** Whether the stream that is analysed, and the main one, must not be at loopback addresses. */
  loopbackClosed: Readonly<{ analysed: boolean; main: boolean }>
}>

/** Longest for a picture of a camera's main stream. */
export const mainPictureAtMostMs = 10_000

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/**
 * A step of a change of the ensemble: another one is opened beside the one that works, compared with it, given the cameras (`tried: false`
 * gives them back), and then kept or let go. Without a second one the last does nothing.
 */
export type ModelQuestion =
  | Message<'openEnsemble', { ensemble: string; repositories: readonly string[] }>
  | Message<'compareEnsembles', ComparisonLimits>
  | Message<'useEnsemble', { tried: boolean }>
  | Message<'settleEnsemble', { keeps: boolean }>

/** A question with an answer: {@link FromEngine} `answer` carries the same `requestId`. */
export type EngineQuestion =
  | ModelQuestion
  | Message<'snapshot', { cameraId: string; overlay: boolean; own: boolean }>
  | Message<'pushFrame', { cameraId: string; image: Base64 }>

/** What each question is answered with; steps of a change with the detector that was opened, or is in use. */
export type EngineAnswers = {
  snapshot: SnapshotFacts & Readonly<{ jpeg: Base64 }>
  pushFrame: Readonly<{ seq: number }>
  openEnsemble: DetectorInfo
  compareEnsembles: ComparedFrames
  useEnsemble: DetectorInfo
  settleEnsemble: DetectorInfo
}

/** Control -> engine. Messages arrive in order. */
export type ToEngine =
  | Message<'setup', { setup: EngineSetup }>
  | Message<'setCamera', CameraAssignment>
  | Message<'removeCamera', { cameraId: string }>
  | Message<'pictures', { cameras: readonly string[] }>
  /** What it wanted to know. */
  | Message<'cameraShapes', { shapes: CameraShapes }>
  /** What a decoder wanted to know. */
  | Message<'card', { requestId: number; answer: CardAnswer }>
  /** The decoder of a camera was refused room on the card, which has it by now. */
  | Message<'cardHasRoom', { cameraId: string }>
  | Message<'ask', { requestId: number; question: EngineQuestion }>
  | Message<'stop', { drainMs: number }>

/** The way from an engine to control. */
export type EngineOutput = Readonly<{
  send(message: FromEngine): void
  sendResult(result: EngineResult<string>): void
  /** Bytes that wait, since control does not read. */
  readonly unsentBytes: number
}>

/** State of the process, once a second; its absence tells a hung engine. */
export type EngineBeat = Readonly<{
  rssBytes: number
  cpuSeconds: number
  loopP99Ms: number
  /** Of the detector, those that are up. */
  instancesReady: number
  /** Of batches, where a session takes one. */
  sizes?: SizesInUse
  scoreFault?: ScoreFault
  /** Since the beat before. */
  stepFailures: readonly StepFailures[]
  cameras: readonly CameraBeat[]
  /** What its models did since it began. */
  models: readonly CountedStatistics[]
  /** Where they run, and where not though they should. */
  providers: readonly ProviderUse[]
}>

/** Engine -> control, beside results, which are bytes (`result-frame.ts`). All arrives in order. */
export type FromEngine =
  | Message<'online'>
  /** It loads a model with `gantry.input_size: rect`, and waits for the shapes of the cameras, which decide its size. */
  | Message<'wantsCameraShapes'>
  | Message<'ready', { detector: DetectorInfo; providers: readonly ProviderUse[] }>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'status', { cameraId: string; status: CameraStatus }>
  | Message<'warning', { cameraId: string; kind: SourceWarning }>
  | Message<'beat', { beat: EngineBeat }>
  | Message<'instanceExited', { error: ErrorRecord }>
  /** The ensemble that is tried on the cameras: its runs fail. */
  | Message<'triedFails', { reason: string }>
  /** A decoder of the camera is about to start on the engine's GPU; answered with `card`. */
  | Message<'wantsCard', { requestId: number; cameraId: string }>
  /** It has ended. */
  | Message<'leavesCard', { cameraId: string }>
  | Message<'removed', { cameraId: string; counts: FrameCounts }>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'stopped'>
