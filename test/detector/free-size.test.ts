import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { letterboxOf, type SizePx } from '../../src/vision/letterbox.js'
import { clipFrame } from '../support/clip-frame.js'
import { type DetectorRig, startDetector } from '../support/detector-rig.js'
import { parametersText } from '../support/ensemble-text.js'
import { addFreePpeDetector, freeSizeDetector } from '../support/free-size-models.js'
import { addModel } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const hd = { widthPx: 1280, heightPx: 720 }
const cameraShapes = { pictures: [hd, hd], cameras: 2 }
const red = [255, 0, 0] as const

async function running(onnx: Uint8Array, size = 'rect'): Promise<DetectorRig> {
  const repositoryDir = tempDir()
  addModel(repositoryDir, 'free', { onnx, config: parametersText({ 'gantry.input_size': size }) })
  return startDetector({ repositoryDir, ensemble: 'free', cameraShapes, inference: { instances: 2 } })
}

/** Frames of both instances. */
async function foundBy(rig: DetectorRig) {
  const outcomes = await Promise.all(['a', 'b', 'c'].map((camera) => rig.detect(rig.frame(camera, 1, red))))
  return outcomes.map(({ result, error }) => {
    if (error !== undefined) throw error as Error
    return result?.detections
  })
}

const redBox = [expect.objectContaining({ label: 'red', boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 } })]

describe('a detector with gantry.input_size "rect"', () => {
  it('runs at the shape of the cameras, in every instance', async () => {
    const rig = await running(freeSizeDetector('follows'))
    expect(rig.detector.info).toMatchObject({
      format: { input: { widthPx: 64, heightPx: 40 } },
      inputFrom: 'the shape of 2 of 2 cameras',
      exportedInput: { widthPx: 64, heightPx: 64 },
    })
    expect(await foundBy(rig)).toEqual([redBox, redBox, redBox])
    expect(rig.logLines.filter(({ level }) => level === 40)).toEqual([])
  })

  it('runs at the size that gantry.input_size says instead', async () => {
    const rig = await running(freeSizeDetector('follows'), '96x32')
    expect(rig.detector.info).toMatchObject({
      format: { input: { widthPx: 96, heightPx: 32 } },
      inputFrom: 'gantry.input_size',
    })
    expect(await foundBy(rig)).toEqual([redBox, redBox, redBox])
  })

  it.each([
    ['cannot run at that shape', 'reshapes', /Reshape/],
    ['gives what it gives at its own', 'constant', /has not the cells of a picture of 64x40/],
  ] as const)('R35: runs as it was exported where it %s, and says so by name', async (_, kind, reason) => {
    const rig = await running(freeSizeDetector(kind))
    const { info } = rig.detector
    expect(info.format.input).toEqual({ widthPx: 64, heightPx: 64 })
    expect(info).not.toHaveProperty('exportedInput')
    expect(info.inputFrom).toMatch(/^its export, as it does not run at 64x40: /)
    expect(info.inputFrom).toMatch(reason)
    expect(await foundBy(rig)).toEqual([redBox, redBox, redBox])
    expect(rig.logLines).toContainEqual(
      expect.objectContaining({
        model: 'free',
        reason: expect.stringMatching(reason) as string,
        msg: 'gantry.input_size is "rect", but the model does not run at 64x40: it runs at 64x64, as it was exported; set gantry.input_size to 64x64',
      }),
    )
  })
})

const yard = fileURLToPath(new URL('../../pipelines/demo/clips/yard.mp4', import.meta.url))

async function boxesAt(cameraShape: SizePx | undefined) {
  const repositoryDir = tempDir()
  addFreePpeDetector(repositoryDir, 'free')
  const rig = await startDetector({
    repositoryDir,
    ensemble: 'free',
    inference: { instances: 1 },
    ...(cameraShape && { cameraShapes: { pictures: [cameraShape], cameras: 1 } }),
  })
  const { format } = rig.detector.info
  const { result } = await rig.detect({
    ...rig.frame('yard', 1),
    source: hd,
    regionPx: { x: 0, y: 0, ...hd },
    letterbox: letterboxOf(hd, format.input, format.align),
    rgbHwc: clipFrame(yard, 30, hd, format),
  })
  const people = (result?.detections ?? []).filter(({ label, score }) => label === 'person' && score > 0.5)
  return { input: format.input, people: people.map(({ boxPx }) => boxPx).sort((a, b) => a.x1 - b.x1) }
}

it('finds the same people with the published detector, in fewer pixels', async () => {
  const [square, shaped] = [await boxesAt(undefined), await boxesAt(hd)]
  expect(square.input).toEqual({ widthPx: 416, heightPx: 416 })
  expect(shaped.input).toEqual({ widthPx: 416, heightPx: 256 })
  expect(square.people.length).toBeGreaterThan(1)
  expect(shaped.people).toHaveLength(square.people.length)
  shaped.people.forEach((box, index) => {
    for (const side of ['x1', 'y1', 'x2', 'y2'] as const)
      expect(Math.abs(box[side] - square.people[index]![side])).toBeLessThan(8)
  })
})
