import { describe, expect, it } from 'vitest'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { HeadUnknownError } from '../../../src/detector/errors.js'
import { type HeadClues, recogniseHead } from '../../../src/detector/heads/recognise-head.js'
import { cameraDetectorOf } from '../../support/camera-detector-of.js'
import { startDetector } from '../../support/detector-rig.js'
import { addModel, constantOnnx, namesMetadata } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

function clues(shape: readonly number[], over: Partial<HeadClues> = {}): HeadClues {
  return {
    model: 'm',
    input: { widthPx: 352, heightPx: 352 },
    outputs: [{ name: '758', type: 'float32', shape }],
    labels: undefined,
    explicit: undefined,
    ...over,
  }
}

describe('R67: FastestDet', () => {
  it.each([
    ['by the size of its cells', clues([1, 85, 22, 22]), 80, 16],
    ['by labels', clues([1, 7, 11, 11], { labels: 2 }), 2, 32],
    ['pixel by pixel', clues([1, 22, 22, 85], { labels: 80 }), 80, 16],
    ['as set', clues([1, 8, 44, 44], { explicit: 'fastestdet' }), 3, 8],
    ['of a wide picture', clues([1, 7, 12, 20], { input: { widthPx: 320, heightPx: 192 } }), 2, 16],
  ])('is known %s', (_, given, classes, stride) => {
    expect(recogniseHead(given)).toMatchObject({
      kind: 'fastestdet',
      output: '758',
      classes,
      strides: [stride],
    })
  })

  it.each([
    ['YOLOv2, of other cells', clues([1, 125, 11, 11])],
    ['a map of classes, of every pixel', clues([1, 21, 352, 352])],
    ['cells that are not square', clues([1, 85, 22, 11])],
    ['labels of another number', clues([1, 85, 22, 22], { labels: 12 })],
  ])('is not %s', (_, given) => {
    expect(() => recogniseHead(given)).toThrow(HeadUnknownError)
  })

  it('decodes by tanh and sigmoid, and scores by objectness ** 0.6 * class ** 0.4', async () => {
    // 4 x 4 cells of 16 pixels; cell (1, 2).
    const at = 2 * 4 + 1
    const data = new Float32Array(7 * 16)
    const numbers = [0.9, 0.5, -0.25, 0, -1, 0.2, 0.8]
    numbers.forEach((value, channel) => (data[channel * 16 + at] = value))
    const images = { name: 'input.1', type: 'float32', shape: [1, 3, 64, 64] } as const
    const repositoryDir = tempDir()
    const onnx = constantOnnx(
      [images],
      [{ name: '758', shape: [1, 7, 4, 4], data }],
      [],
      [],
      namesMetadata(['cat', 'dog']),
    )
    addModel(repositoryDir, 'm', { onnx })
    expect(planDetector(cameraDetectorOf(repositoryDir, 'm')).input).toMatchObject({
      channels: 'bgr',
      range: '0-1',
    })
    const rig = await startDetector({ repositoryDir, ensemble: 'm', inference: { instances: 1 } })
    const { result } = await rig.detect(rig.frame('a', 1))
    const cx = ((Math.tanh(0.5) + 1) / 4) * 64
    const cy = ((Math.tanh(-0.25) + 2) / 4) * 64
    const height = 64 / (1 + Math.exp(1))
    const near = (value: number) => expect.closeTo(value, 3) as number
    expect(result?.detections).toEqual([
      {
        label: 'dog',
        score: near(0.9 ** 0.6 * 0.8 ** 0.4),
        boxPx: { x1: near(cx - 16), x2: near(cx + 16), y1: near(cy - height / 2), y2: near(cy + height / 2) },
      },
    ])
  })
})
