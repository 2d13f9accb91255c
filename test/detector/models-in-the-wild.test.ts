import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { letterboxOf } from '../../src/vision/letterbox.js'
import { clipFrame } from '../support/clip-frame.js'
import { startDetector } from '../support/detector-rig.js'
import { tempDir } from '../support/temp-dir.js'

/** Models and footage that others made; they are not part of the project. */
const shared = join(import.meta.dirname, '../../../shared')
const clip = join(shared, 'clips/worker-zone-480x270.mp4')
const models = join(shared, 'models-in-the-wild')
const present = existsSync(clip) && existsSync(models)
if (!present) process.stderr.write(`SKIPPED: detectors made by others, as there is no ${models}\n`)

const size = { widthPx: 480, heightPx: 270 }

describe.skipIf(!present)('detectors made by others', () => {
  it.each([
    // Scores as ONNX Runtime gives them in Python on the same picture; ffmpeg scales it a little differently.
    { file: 'yolov8n-coco-int8.onnx', head: 'yolov8', input: 640, label: 'person', score: 0.95 },
    { file: 'yolox-nano-coco-416.onnx', head: 'yolox', input: 416, label: 'class_0', score: 0.87 },
  ])('$file finds the worker', async ({ file, head, input, label, score }) => {
    const repositoryDir = tempDir()
    mkdirSync(join(repositoryDir, 'wild/1'), { recursive: true })
    copyFileSync(join(models, file), join(repositoryDir, 'wild/1/model.onnx'))
    const rig = await startDetector({ repositoryDir, ensemble: 'wild', inference: { instances: 1 } })
    expect(rig.detector.info).toMatchObject({ head, format: { input: { widthPx: input, heightPx: input } } })

    const { format } = rig.detector.info
    const frame = rig.frame('cam', 1)
    const outcome = await rig.detect({
      ...frame,
      source: size,
      regionPx: { x: 0, y: 0, ...size },
      letterbox: letterboxOf(size, format.input, format.align),
      rgbHwc: clipFrame(clip, 30, size, format),
    })
    const person = outcome.result?.detections.find((detection) => detection.label === label)
    expect(person?.score).toBeCloseTo(score, 1)
    // The worker stands left of the middle and fills most of the height.
    expect(person?.boxPx.x1).toBeGreaterThan(90)
    expect(person?.boxPx.x2).toBeLessThan(200)
    expect(person?.boxPx.y1).toBeLessThan(90)
    expect(person?.boxPx.y2).toBeGreaterThan(240)
  })
})
