import { expect, it } from 'vitest'
import type { DetectorInfo, DetectorListener } from '../../src/detector/camera-detector.js'
import { ClassDoubts } from '../../src/detector/class-doubts.js'
import type { LaterResult, LaterSteps } from '../../src/detector/later-steps.js'
import { type FrameRunner, ScheduledDetector } from '../../src/detector/scheduled-detector.js'
import type { Frame } from '../../src/vision/frame.js'
import { letterboxOf } from '../../src/vision/letterbox.js'
import { silentLog } from '../support/silent-log.js'

const size = { widthPx: 2, heightPx: 2 }
const rows = Float32Array.of(0, 0.9, 0, 0, 1, 1)

const frame = (cameraId: string, seq: number): Frame => ({
  cameraId,
  seq,
  capturedAtMs: 0,
  arrivedMs: 0,
  ptsMs: 0,
  quality: 'ok',
  source: size,
  regionPx: { x: 0, y: 0, ...size },
  letterbox: letterboxOf(size, size, 'center'),
  rgbHwc: new ArrayBuffer(12),
})

it('tells the frames of a camera in order, whichever the later steps end with first, and waits for no other camera', async () => {
  const runner: FrameRunner = {
    idle: 8,
    ahead: 0,
    run: ({ frames }) =>
      Promise.resolve({
        startedMs: 0,
        inferMs: 0,
        inputMs: 0,
        frames: frames.map(({ rgbHwc }) => ({
          rgbHwc,
          rows,
          postprocessMs: 0,
          belowFirst: 0,
          unsound: 0,
          strange: undefined,
        })),
      }),
    stop: () => Promise.resolve(),
  }
  const ends: ((result: LaterResult) => void)[] = []
  let asked: () => void = () => undefined
  const allAsked = new Promise<void>((resolve) => (asked = resolve))
  const later: LaterSteps = {
    run: () =>
      new Promise((resolve) => {
        if (ends.push(resolve) === 3) asked()
      }),
    takeFailures: () => [],
    stop: () => Promise.resolve(),
  }
  const told: string[] = []
  const fail = (): never => expect.fail('no frame is lost')
  const listener: DetectorListener = {
    detected: ({ cameraId, seq }, { detections }) =>
      told.push(`${cameraId} ${seq} ${detections[0]?.attributes?.[0]?.value}`),
    superseded: fail,
    shed: fail,
    instanceExited: fail,
    hung: fail,
  }
  const info = { format: { input: size, align: 'center' }, labels: ['helmet'], maxBatchSize: 1 }
  const doubts = new ClassDoubts('m', 'labels', 0, silentLog())
  const detector = new ScheduledDetector(
    info as unknown as DetectorInfo,
    0,
    runner,
    listener,
    doubts,
    undefined,
    later,
  )
  detector.offer(frame('a', 1))
  detector.offer(frame('a', 2))
  detector.offer(frame('b', 1))
  await allAsked
  const end = async (index: number, value: string) => {
    ends[index]?.({ rows, attributes: [[{ name: 'colour', value }]] })
    await new Promise(setImmediate)
  }
  await end(1, 'second')
  expect(told).toEqual([])
  await end(2, 'other')
  expect(told).toEqual(['b 1 other'])
  await end(0, 'first')
  expect(told).toEqual(['b 1 other', 'a 1 first', 'a 2 second'])
  await detector.stop(0)
})
