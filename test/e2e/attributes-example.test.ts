import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { attributesOf, planAttributes } from '../../src/ensemble/attributes.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { specsOf } from '../../src/backends/config-tensors.js'
import { letterboxOf } from '../../src/vision/letterbox.js'
import type { Detection } from '../../src/vision/detection.js'
import { startDetector } from '../support/detector-rig.js'
import { clipFrame } from '../support/clip-frame.js'
import { fp32 } from '../support/direct-model.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/attributes/models')
const clips = join(root, 'pipelines/demo/clips')
const size = { widthPx: 1280, heightPx: 720 }
/** Of the scenario behind the clip that the classifier has not seen. */
const helmets: Readonly<Record<string, string>> = { ines: 'white', jon: 'yellow', kim: 'other' }

type Output = Readonly<{ name: string; shape: readonly number[]; data: readonly (number | string)[] }>
type TruthObject = Readonly<{ id: string; class: string; visible: number; box: readonly number[] }>

describe('examples/attributes', () => {
  let service: TestService
  beforeAll(async () => {
    service = await TestService.start({
      pipeline: {
        engines: 0,
        models: {
          repository: [join(root, 'models'), example],
          control: 'explicit',
          load: ['ppe_colour', 'ppe_place'],
          allowJsBackends: true,
        },
        modelServer: { enabled: true },
      },
    })
    await until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).ok, 60_000)
  })
  afterAll(() => service[Symbol.asyncDispose]())

  async function infer(model: string, rgb: Uint8Array): Promise<readonly Output[]> {
    const image = {
      name: 'image',
      datatype: 'UINT8',
      shape: [size.heightPx, size.widthPx, 3],
      parameters: { binary_data_size: rgb.byteLength },
    }
    const header = Buffer.from(JSON.stringify({ inputs: [image] }))
    const response = await fetch(`${service.url}/v2/models/${model}/infer`, {
      method: 'POST',
      headers: { 'inference-header-content-length': String(header.byteLength) },
      body: Buffer.concat([header, rgb]),
    })
    const answer = (await response.json()) as { outputs: readonly Output[]; error?: string }
    expect(answer.error).toBeUndefined()
    return answer.outputs
  }

  const frame = (index: number) =>
    new Uint8Array(clipFrame(join(clips, 'yard.mp4'), index, size, { input: size, align: 'center' }))

  it('say the colour of each helmet of a frame that the classifier has not seen', async () => {
    const [detections, colour] = await infer('ppe_colour', frame(30))
    const boxes = rowsOf(detections, 6)
    expect(colour?.shape).toEqual([boxes.length, 5])
    const config = parseModelConfig(
      readFileSync(join(example, 'ppe_colour/config.pbtxt'), 'utf8'),
      'config.pbtxt',
    )
    const colours = readFileSync(join(example, 'helmet_colour/labels.txt'), 'utf8').trim().split('\n')
    const labels = readFileSync(join(root, 'models/ppe_detect_video/labels.txt'), 'utf8').trim().split('\n')
    const outputs = specsOf(config, config.output)
    const plan = planAttributes(
      'ppe_colour',
      config,
      { outputs, boxRows: new Set(['colour']) },
      () => colours,
    )
    const found = boxes.map(([x1 = 0, y1 = 0, x2 = 0, y2 = 0, , line = 0]) => ({
      label: labels[line] ?? '',
      box: [x1, y1, x2, y2],
    }))
    const tensor = fp32('colour', [boxes.length, 5], (colour?.data ?? []) as number[])
    const attributes = attributesOf(plan, [tensor], found, (_, problem) => expect.fail(problem))
    const told = truthAt(30).map(({ id, box }) => {
      const at = found.findIndex((each) => each.label === 'helmet' && overlap(each.box, box) > 0.4)
      return [id, attributes[at]]
    })
    expect(told.length).toBeGreaterThan(1)
    expect(told).toEqual(
      truthAt(30).map(({ id }) => [
        id,
        [
          {
            name: 'helmet_colour',
            value: helmets[id.split('/')[0] ?? ''],
            score: expect.any(Number) as number,
          },
        ],
      ]),
    )
    found.forEach(({ label }, box) => expect(attributes[box]).toHaveLength(label === 'helmet' ? 1 : 0))
  })

  it('say where each box is by a step in JavaScript', async () => {
    const [detections, place] = await infer('ppe_place', frame(30))
    const expected = rowsOf(detections, 6).map(([x1 = 0, , x2 = 0]) =>
      x2 - x1 > 1280 / 3 ? '' : ['left', 'middle', 'right'][Math.floor(((x1 + x2) / 2 / 1280) * 3)],
    )
    expect(expected.length).toBeGreaterThan(3)
    expect(place?.data).toEqual(expected)
  })

  it('say nothing of a picture without anything', async () => {
    const grey = new Uint8Array(size.widthPx * size.heightPx * 3).fill(114)
    for (const [model, shape] of [
      ['ppe_colour', [0, 5]],
      ['ppe_place', [0]],
    ] as const) {
      const [detections, attribute] = await infer(model, grey)
      expect(detections?.shape).toEqual([0, 6])
      expect(attribute).toMatchObject({ shape, data: [] })
    }
  })
})

describe('cameras on examples/attributes', () => {
  /** Frame 30 of a clip as a camera brings it. */
  async function detected(ensemble: string): Promise<readonly Detection[]> {
    const rig = await startDetector({
      repositoryDir: [example, join(root, 'models')],
      ensemble,
      inference: { instances: 1, stepTimeoutMs: 20_000 },
    })
    const { format } = rig.detector.info
    const { result } = await rig.detect({
      ...rig.frame('yard', 1),
      source: size,
      regionPx: { x: 0, y: 0, ...size },
      letterbox: letterboxOf(size, format.input, format.align),
      rgbHwc: clipFrame(join(clips, 'yard.mp4'), 30, size, format),
    })
    expect(rig.detector.takeStepFailures()).toEqual([])
    return result?.detections ?? []
  }

  it('say the colour of each helmet, cut out of the frame by crop', async () => {
    const detections = await detected('ppe_colour')
    const isHelmet = ({ label }: Detection) => label === 'helmet'
    const colours = detections.filter(isHelmet).map(({ attributes }) => attributes?.[0]?.value)
    expect(colours.sort()).toEqual(
      truthAt(30)
        .map(({ id }) => helmets[id.split('/')[0] ?? ''])
        .sort(),
    )
    for (const detection of detections)
      expect(detection.attributes?.map(({ name }) => name)).toEqual(
        isHelmet(detection) ? ['helmet_colour'] : undefined,
      )
  })

  it('say where each box is by a step in JavaScript', async () => {
    for (const { boxPx, attributes } of await detected('ppe_place')) {
      const [middle, width] = [(boxPx.x1 + boxPx.x2) / 2, boxPx.x2 - boxPx.x1]
      const place = ['left', 'middle', 'right'][Math.floor((middle / 1280) * 3)]
      expect(attributes).toEqual(width > 1280 / 3 ? undefined : [{ name: 'place', value: place }])
    }
  })
})

function rowsOf(output: Output | undefined, columns: number): readonly (readonly number[])[] {
  const data = (output?.data ?? []) as readonly number[]
  return Array.from({ length: data.length / columns }, (_, row) =>
    data.slice(row * columns, (row + 1) * columns),
  )
}

function truthAt(index: number): readonly TruthObject[] {
  const truth = JSON.parse(readFileSync(join(clips, 'yard.truth.json'), 'utf8')) as {
    frames: readonly Readonly<{ frame: number; objects: readonly TruthObject[] }>[]
  }
  const objects = truth.frames.find(({ frame: at }) => at === index)?.objects ?? []
  return objects.filter((object) => object.class === 'helmet' && object.visible > 0.8)
}

/** Intersection over union. */
function overlap(a: readonly number[], b: readonly number[]): number {
  const side = (low: number) => Math.max(0, Math.min(a[low + 2]!, b[low + 2]!) - Math.max(a[low]!, b[low]!))
  const area = ([x1 = 0, y1 = 0, x2 = 0, y2 = 0]: readonly number[]) => (x2 - x1) * (y2 - y1)
  const both = side(0) * side(1)
  return both / (area(a) + area(b) - both)
}
