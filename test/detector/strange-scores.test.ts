import { describe, expect, it } from 'vitest'
import { Candidates } from '../../src/detector/heads/candidates.js'
import { createHead } from '../../src/detector/heads/create-head.js'
import { defaultHeadOptions, type HeadKind, type HeadOptions } from '../../src/detector/heads/head.js'
import { FrameReader } from '../../src/detector/frame-reader.js'
import { strangeScoresText } from '../../src/detector/strange-scores.js'
import { startDetector } from '../support/detector-rig.js'
import { addModel, constantOnnx, namesMetadata } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const input = { widthPx: 64, heightPx: 64 }
const limits = { scoreThreshold: 0.3, iouThreshold: 0.5, maxDetections: 300 }
const anchors = 84

/** Points of a YOLOv8 of two classes, far from each other: each with these scores of the second class. */
function yolov8(scores: readonly number[]): Float32Array {
  const data = new Float32Array(6 * anchors)
  scores.forEach((score, at) => {
    data[at] = 6 + 10 * at
    data[anchors + at] = 32
    data[2 * anchors + at] = 8
    data[3 * anchors + at] = 8
    data[5 * anchors + at] = score
  })
  return data
}

async function detect(scores: readonly number[], config?: string) {
  const repositoryDir = tempDir()
  const images = { name: 'images', type: 'float32', shape: [1, 3, 64, 64] } as const
  const output = { name: 'output0', shape: [1, 6, anchors], data: yolov8(scores) }
  const onnx = constantOnnx([images], [output], [], [], namesMetadata(['cat', 'dog']))
  addModel(repositoryDir, 'm', { onnx, ...(config !== undefined && { config }) })
  const rig = await startDetector({ repositoryDir, ensemble: 'm', inference: { instances: 1 } })
  const found = []
  for (const seq of [1, 2, 3]) found.push((await rig.detect(rig.frame('a', seq))).result?.detections)
  const told = rig.logLines.filter(({ level, msg }) => level === 50 && /scores/.test(String(msg)))
  return { info: rig.detector.info, scores: found.map((each) => each?.map(({ score }) => score)), told }
}
const activation = (word: string) =>
  `parameters { key: "gantry.head_activation" value { string_value: "${word}" } }`

describe('R67: scores outside of 0..1', () => {
  it.each([
    ['logits', [0.875, 4.5, -3], [[0.875]], 'from -3 to 4.5', 'gantry.head_activation to "sigmoid"'],
    ['percentages', [87.5, 50, 0], [[]], 'from 0 to 87.5', 'gantry.head_activation to "percent"'],
    ['infinity', [Infinity, 0.875], [[0.875]], 'no numbers', 'export it again'],
    ['not a number', [Number.NaN, 0.875], [[0.875]], 'no numbers', 'export it again'],
  ])('%s are not published, and told once with the setting', async (_, scores, [kept], range, setting) => {
    const { info, scores: published, told } = await detect(scores)
    expect(published).toEqual([kept, kept, kept])
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ model: 'm', msg: expect.stringContaining(range) as string })
    expect(told[0]?.msg).toContain(setting)
    const left = scores.filter((score) => score > 1).length
    expect(info.scoreFault).toEqual({ boxes: 3 * left, reason: told[0]?.msg })
  })

  it.each([
    // The scores of the other class are 0, which is 0.5.
    ['sigmoid', [Math.log(7), -4, 0], [0.875, 0.5, 0.5]],
    ['percent', [87.5, 50, 0], [0.875, 0.5]],
  ])('gantry.head_activation %s makes scores of them', async (word, scores, kept) => {
    const { info, scores: published, told } = await detect(scores, activation(word))
    expect(published[0]?.map((score) => Math.round(score * 1e5) / 1e5)).toEqual(kept)
    expect(told).toEqual([])
    expect(info.scoreFault).toBeUndefined()
  })

  it('what is rounded above 1 is 1, as of models in 8 bits', async () => {
    const { scores, told } = await detect([1.0078125, 0.875, -0.0078125])
    expect(scores[0]).toEqual([1, 0.875])
    expect(told).toEqual([])
  })

  it('a box that is no number is left out', () => {
    const data = yolov8([0.875, 0.75])
    data[1] = Number.NaN
    const reader = new FrameReader(
      { kind: 'yolov8', output: 'o', classes: 2, columns: 2, strides: [] },
      input,
      limits,
    )
    const findings = reader.read([{ values: data, shape: [1, 6, anchors] }], 0)
    expect(findings).toMatchObject({ unsound: 1, strange: { lowest: 0, highest: 0, notNumbers: true } })
    expect(findings.kept).toHaveLength(1)
  })

  it('is told with what is likely', () => {
    const text = (lowest: number, highest: number) =>
      strangeScoresText({ lowest, highest, notNumbers: false })
    expect(text(-8.25, 3.125)).toContain('from -8.25 to 3.13')
    expect(text(-8.25, 3.125)).toContain('"sigmoid"')
    expect(text(0, 99)).toContain('"percent" in its config.pbtxt if they are percentages')
  })
})

/** One box of class 1, by numbers of the score as the model gives it. */
const one: Readonly<
  Record<string, (score: number, rest: number) => readonly [readonly number[], readonly number[]][]>
> = {
  yolov8: (score, rest) => [
    [
      [1, 6, 1],
      [32, 32, 8, 8, rest, score],
    ],
  ],
  yolov5: (score, rest) => [
    [
      [1, 1, 7],
      [32, 32, 8, 8, score, rest, score],
    ],
  ],
  yolox: (score, rest) => [
    [
      [1, 1, 7],
      [0.5, 0.5, 0, 0, score, rest, score],
    ],
  ],
  'end-to-end': (score) => [
    [
      [1, 1, 6],
      [8, 8, 32, 32, score, 1],
    ],
  ],
  boxes: (score) => [
    [
      [1, 1, 4],
      [8, 8, 32, 32],
    ],
    [[1, 1], [score]],
    [[1, 1], [1]],
  ],
  ssd: (score, rest) => [
    [
      [1, 1, 2],
      [rest, score],
    ],
    [
      [1, 1, 4],
      [8, 8, 32, 32],
    ],
  ],
  fastestdet: (score, rest) => [
    [
      [1, 7, 1, 1],
      [score, 0, 0, 0, 0, rest, score],
    ],
  ],
}

describe('R67: gantry.head_activation', () => {
  const scoreOf = (kind: string, activated: HeadOptions['activation'], score: number, rest: number) => {
    const outputs = one[kind]!(score, rest)
    const plan = {
      kind: kind as HeadKind,
      output: '0',
      others: outputs.slice(1).map((_, at) => String(at + 1)),
      classes: 2,
      strides: [64],
      options: { ...defaultHeadOptions, activation: activated },
    }
    const found = new Candidates()
    const head = createHead(
      plan,
      input,
      outputs.map(([shape]) => shape),
    )
    head.decode(
      outputs.map(([, data]) => Float32Array.from(data)),
      0,
      0.3,
      found,
    )
    return { scores: [...found.scores.subarray(0, found.count)], blocks: head.scoreBlocks(0) }
  }
  const product = new Set(['yolov5', 'yolox'])

  it.each(Object.keys(one))('of %s makes scores of logits and percentages', (kind) => {
    const wanted = product.has(kind) ? 0.875 ** 2 : 0.875
    for (const [word, score, rest] of [
      ['none', 0.875, 0.1],
      ['sigmoid', Math.log(7), -5],
      ['percent', 87.5, 10],
    ] as const) {
      const { scores, blocks } = scoreOf(kind, word, score, rest)
      expect(scores).toEqual([expect.closeTo(wanted, 4)])
      expect(blocks.length).toBeGreaterThan(0)
    }
  })

  it('softmax is over the classes of a box', () => {
    const share = Math.exp(3) / (Math.exp(3) + Math.exp(1))
    expect(scoreOf('yolov8', 'softmax', 3, 1).scores).toEqual([expect.closeTo(share, 4)])
    expect(scoreOf('ssd', 'softmax', 3, 1).scores).toEqual([expect.closeTo(share, 4)])
  })
})
