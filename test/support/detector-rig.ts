import { onTestFinished } from 'vitest'
import { inferenceSchema, type InferenceConfig } from '../../src/config/inference.js'
import type { CameraDetector, DetectorResult } from '../../src/detector/camera-detector.js'
import type { Float16Findings } from '../../src/detector/float16-findings.js'
import type { CameraShapes } from '../../src/detector/input-size.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { EngineSteps } from '../../src/processes/engine/step-models.js'
import type { ShedCause } from '../../src/vision/accounting.js'
import { type Frame, frameBytes } from '../../src/vision/frame.js'
import { letterboxOf } from '../../src/vision/letterbox.js'
import { recordingLog } from './silent-log.js'

export type Outcome = Readonly<{
  kind: 'detected' | 'superseded' | 'shed'
  cameraId: string
  seq: number
  frame: Frame
  result?: DetectorResult
  cause?: ShedCause
  error?: unknown
}>

/** A running detector and everything it told, in order. */
export type DetectorRig = Readonly<{
  detector: CameraDetector
  outcomes: readonly Outcome[]
  exits: readonly unknown[]
  hangs: readonly unknown[]
  logLines: readonly Record<string, unknown>[]
  /** A frame of one colour, the size of the model's input. */
  frame: (cameraId: string, seq: number, rgb?: readonly [number, number, number]) => Frame
  /** Offers a frame and waits for its end. */
  detect: (frame: Frame) => Promise<Outcome>
  /** Waits until that many frames have ended. */
  ended: (count: number) => Promise<void>
}>

/** Starts a detector on the real workers; it is stopped with the test. */
export async function startDetector(options: {
  repositoryDir: string | readonly string[]
  ensemble: string
  inference?: Partial<InferenceConfig>
  workerEntry?: string
  cameraShapes?: CameraShapes
  findings?: Float16Findings
}): Promise<DetectorRig> {
  const outcomes: Outcome[] = []
  const exits: unknown[] = []
  const hangs: unknown[] = []
  const waiting = new Set<() => void>()
  const told = (outcome: Outcome) => {
    outcomes.push(outcome)
    for (const check of waiting) check()
  }
  const { log, lines } = recordingLog()
  const name = ({ cameraId, seq }: Frame) => ({ cameraId, seq })
  const inference = inferenceSchema.parse({ providers: ['cpu'], ...options.inference })
  const detector = await createCameraDetector({
    repositories: options.repositoryDir,
    ensemble: options.ensemble,
    inference,
    log,
    steps: new EngineSteps({
      repositories: [options.repositoryDir].flat(),
      inference,
      allowJsBackends: true,
      onHung: (reason) => hangs.push(reason),
      log,
    }),
    ...(options.findings && { findings: options.findings }),
    ...(options.cameraShapes && { cameraShapes: () => Promise.resolve(options.cameraShapes!) }),
    ...(options.workerEntry === undefined ? {} : { workerEntry: options.workerEntry }),
    listener: {
      detected: (frame, result) => told({ kind: 'detected', ...name(frame), frame, result }),
      superseded: (frame) => told({ kind: 'superseded', ...name(frame), frame }),
      shed: (frame, cause, error) => told({ kind: 'shed', ...name(frame), frame, cause, error }),
      instanceExited: (error) => exits.push(error),
      hung: (error) => hangs.push(error),
    },
  })
  onTestFinished(() => detector.stop(2_000))

  const settled = <T>(find: () => T | undefined) =>
    new Promise<T>((resolve) => {
      const check = () => {
        const found = find()
        if (found === undefined) return
        waiting.delete(check)
        resolve(found)
      }
      waiting.add(check)
      check()
    })
  return {
    detector,
    outcomes,
    exits,
    hangs,
    logLines: lines,
    frame: (cameraId, seq, rgb) => plainFrame(detector, cameraId, seq, rgb),
    detect: (frame) => {
      detector.offer(frame)
      return settled(() => outcomes.find((o) => o.cameraId === frame.cameraId && o.seq === frame.seq))
    },
    ended: async (count) => void (await settled(() => (outcomes.length >= count ? true : undefined))),
  }
}

function plainFrame(
  { info }: CameraDetector,
  cameraId: string,
  seq: number,
  rgb: readonly [number, number, number] = [0, 0, 0],
): Frame {
  const source = info.format.input
  const bytes = new Uint8Array(frameBytes(info.format))
  for (let at = 0; at < bytes.length; at += 3) bytes.set(rgb, at)
  return {
    cameraId,
    seq,
    capturedAtMs: Date.now(),
    arrivedMs: 0,
    ptsMs: 0,
    quality: 'ok',
    source,
    regionPx: { x: 0, y: 0, ...source },
    letterbox: letterboxOf(source, info.format.input, info.format.align),
    rgbHwc: bytes.buffer,
  }
}
