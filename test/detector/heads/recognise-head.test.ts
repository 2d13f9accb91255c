import { describe, expect, it } from 'vitest'
import { HeadUnknownError } from '../../../src/detector/errors.js'
import { recogniseHead, type HeadClues } from '../../../src/detector/heads/recognise-head.js'

function clues(shape: readonly (number | string)[], over: Partial<HeadClues> = {}): HeadClues {
  return {
    model: 'm',
    input: { widthPx: 640, heightPx: 640 },
    outputs: [{ name: 'out', type: 'float32', shape }],
    labels: undefined,
    explicit: undefined,
    ...over,
  }
}

const small = { input: { widthPx: 416, heightPx: 416 } }

describe('recogniseHead', () => {
  it.each([
    ['YOLOv8 of 80 classes', clues([1, 84, 8400]), { kind: 'yolov8', classes: 80 }],
    ['YOLOv8 of one class', clues([1, 5, 8400]), { kind: 'yolov8', classes: 1 }],
    ['YOLOv8 with a finer grid', clues([1, 84, 34000]), { kind: 'yolov8', classes: 80 }],
    [
      'YOLOv8 with open sizes and labels',
      clues(['N', 11, 'points'], { labels: 7 }),
      { kind: 'yolov8', classes: 7 },
    ],
    [
      'YOLOv8 of an odd grid with labels',
      clues([1, 11, 9000], { labels: 7 }),
      { kind: 'yolov8', classes: 7 },
    ],
    ['YOLOv5 of 80 classes', clues([1, 25200, 85]), { kind: 'yolov5', classes: 80 }],
    ['YOLOv5 of one class', clues(['N', 25200, 6]), { kind: 'yolov5', classes: 1 }],
    ['YOLOX-Nano', clues([1, 3549, 85], small), { kind: 'yolox', classes: 80, strides: [8, 16, 32] }],
    ['YOLOX of one class', clues([1, 8400, 6]), { kind: 'yolox', classes: 1 }],
    ['YOLOv10', clues([1, 300, 6]), { kind: 'end-to-end', classes: undefined }],
    ['any number of boxes', clues(['N', 'boxes', 6]), { kind: 'end-to-end' }],
    [
      'half floats',
      clues([], { outputs: [{ name: 'out', type: 'float16', shape: [1, 84, 8400] }] }),
      { kind: 'yolov8', reason: 'the shape of output "out"' },
    ],
  ])('recognises %s', (_, given, plan) => {
    expect(recogniseHead(given)).toMatchObject({ output: 'out', ...plan })
  })

  it('believes what is set', () => {
    expect(recogniseHead(clues([1, 8400, 85], { explicit: 'yolov5' })).kind).toBe('yolov5')
    expect(recogniseHead(clues([1, 84, 8401], { explicit: 'yolov8' })).kind).toBe('yolov8')
  })

  it('leaves labels that do not match to be told as such', () => {
    expect(recogniseHead(clues([1, 84, 8400], { labels: 79 })).classes).toBe(80)
    expect(recogniseHead(clues(['N', 11, 'points'], { labels: 6 }))).toMatchObject({
      kind: 'yolov8',
      classes: 7,
    })
  })

  it('picks the detections among other outputs', () => {
    const outputs = [
      { name: 'raw', type: 'float32', shape: [1, 3, 80, 80, 85] },
      { name: 'out', type: 'float32', shape: [1, 25200, 85] },
    ] as const
    expect(recogniseHead(clues([], { outputs })).output).toBe('out')
  })

  it.each([
    ['a classifier', clues([1, 1000])],
    [
      'boxes and scores apart',
      clues([], { outputs: [{ name: 'boxes', type: 'float32', shape: [1, 8400, 4] }] }),
    ],
    ['open sizes without labels', clues(['N', 'a', 'b'])],
  ])('says what it sees and what it expects for %s', (_, given) => {
    expect(() => recogniseHead(given)).toThrow(HeadUnknownError)
    expect(() => recogniseHead(given)).toThrow(
      /it has "\w+" float.*expected yolov8 \[N, 4 \+ classes, anchors\]/,
    )
  })

  it('refuses a head it does not know, and one that the output cannot be', () => {
    expect(() => recogniseHead(clues([1, 84, 8400], { explicit: 'yolov9000' }))).toThrow(
      'gantry.head "yolov9000" is not known',
    )
    expect(() => recogniseHead(clues([1, 84, 8400], { explicit: 'end-to-end' }))).toThrow(
      'can be read as a end-to-end head',
    )
  })

  it('refuses to choose between two outputs', () => {
    const outputs = ['a', 'b'].map((name) => ({ name, type: 'float32' as const, shape: [1, 84, 8400] }))
    expect(() => recogniseHead(clues([], { outputs }))).toThrow('2 outputs could be detections (a, b)')
  })
})
