import { expect, it } from 'vitest'
import type { EngineResult } from '../../../src/cameras/engine-report.js'
import { readResult, resultFields } from '../../../src/processes/engine/result-frame.js'
import { FrameError, frameHeadBytes } from '../../../src/processes/frames.js'

const result: EngineResult<string> = {
  cameraId: 'dock-1',
  seq: 17,
  capturedAtMs: 1_764_218_400_123,
  arrivedMs: 812_345.678,
  source: { widthPx: 1280, heightPx: 720 },
  model: 'ppe-größer',
  run: { timingsMs: { queue: 3.1, infer: 21.4, postprocess: 0.8 }, batchSize: 4 },
  labels: [
    ['helmet', 3],
    ['Warnweste 🦺', 1],
  ],
  decodeGapsMs: [40, 39.5, 81.25],
  counts: {
    received: 100,
    inferred: 80,
    reused: 1,
    superseded: 2,
    suspect: 3,
    lost: 4,
    shed: { inference_failed: 5, stopping: 6 },
  },
  text: '{"cameraId":"dock-1","detections":[{"label":"Warnweste 🦺"}],"timingsMs":{"queue":3.1',
}
const picture = Buffer.alloc(70_000, 7)

const { run: _, ...withoutRun } = result
const results: readonly (readonly [string, EngineResult<string>])[] = [
  ['with all there can be', { ...result, picture }],
  ['without a picture', result],
  ['of an earlier frame', withoutRun],
  ['without boxes and gaps', { ...result, labels: [], decodeGapsMs: [] }],
]

function bodyOf(given: EngineResult<string>): Buffer {
  const more = given.picture ?? Buffer.alloc(0)
  return Buffer.concat([resultFields(given).frame(more.length).subarray(frameHeadBytes), more])
}

it.each(results)('a result %s arrives as it left', (_, given) => {
  expect(readResult(bodyOf(given))).toEqual({ ...given, text: Buffer.from(given.text) })
})

it('one that is cut off is none', () => {
  const body = bodyOf(result)
  for (let cut = 0; cut < body.length; cut += 1)
    expect(() => readResult(body.subarray(0, cut)), `${cut}`).toThrow(FrameError)
})
