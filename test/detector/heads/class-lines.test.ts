import { describe, expect, it } from 'vitest'
import { type ErrorRecord, toErrorRecord } from '../../../src/errors.js'
import { readLabelsFile } from '../../../src/repository/labels.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { createEnsembleModel } from '../../../src/ensemble/create-ensemble-model.js'
import { startDetector } from '../../support/detector-rig.js'
import { headParameters } from '../../../src/detector/detection-head/head-parameters.js'
import { requestOf, scheduled, scheduledModel, valuesOf } from '../../support/direct-model.js'
import { addModel } from '../../support/onnx-models.js'
import { silentLog } from '../../support/silent-log.js'
import {
  backgroundHeads,
  channelHeads,
  idHeads,
  rawOf,
  type TellingHead,
  type TellingModel,
} from '../../support/telling-models.js'
import { tempDir } from '../../support/temp-dir.js'

/** Names by channel or class id, as they were published; or why the model was refused. */
type Told = Readonly<{ names?: ReadonlyMap<number, string>; refused?: ErrorRecord; log?: readonly string[] }>

type Files = Readonly<{ labels?: string; config?: string }>
const parameters = (values: Readonly<Record<string, string>>) =>
  Object.entries(values)
    .map(([key, value]) => `parameters { key: "gantry.${key}" value { string_value: "${value}" } }`)
    .join('\n')

function repositoryOf({ onnx }: TellingModel, files: Files): string {
  const repository = tempDir()
  addModel(repository, 'm', { onnx, ...files })
  return repository
}

/** What cameras publish. */
async function cameras(model: TellingModel, files: Files): Promise<Told> {
  try {
    const repositoryDir = repositoryOf(model, files)
    const rig = await startDetector({ repositoryDir, ensemble: 'm', inference: { instances: 1 } })
    const { result, error } = await rig.detect(rig.frame('cam', 1))
    if (error !== undefined) throw error as Error
    return {
      names: new Map(result?.detections.map(({ score, label }) => [rawOf(score), label])),
      log: rig.logLines.map(({ msg }) => String(msg)),
    }
  } catch (error) {
    return { refused: toErrorRecord(error) }
  }
}

/** What an API client reads: the class is a line of the list. */
async function clients(model: TellingModel, files: Files, ownLabels?: readonly string[]): Promise<Told> {
  try {
    const repository = repositoryOf(model, files)
    const detector = await scheduledModel(repository, 'm')
    const map = (kind: string, key: string, value: string) => `${kind} { key: "${key}" value: "${value}" }`
    const config = `name: "e" platform: "ensemble"
      input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
      output { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
      ensemble_scheduling {
        step { model_name: "letterbox" model_version: -1 ${map('input_map', 'image', 'image')}
          ${map('output_map', 'pixels', 'p')} ${map('output_map', 'geometry', 'g')} }
        step { model_name: "m" model_version: -1 ${map('input_map', 'images', 'p')}
          ${model.outputs.map((name) => map('output_map', name, `o_${name}`)).join(' ')} }
        step { model_name: "detection_head" model_version: -1 ${map('input_map', 'geometry', 'g')}
          ${model.outputs.map((name) => map('input_map', name, `o_${name}`)).join(' ')}
          ${map('output_map', 'detections', 'detections')} } }`
    const ensemble = await createEnsembleModel(
      {
        name: 'e',
        version: '1',
        config: parseModelConfig(config, 'c'),
        versionDir: '',
        labels: new Map(ownLabels && [['detections', ownLabels]]),
      },
      { find: (name) => (name === 'm' ? detector : undefined), serve: scheduled, log: silentLog() },
    )
    try {
      const picture = new Uint8Array(64 * 64 * 3)
      const [rows] = await ensemble.infer(
        requestOf([{ name: 'image', datatype: 'UINT8', shape: [64, 64, 3], data: picture }]),
      )
      const lines =
        files.labels === undefined || ownLabels !== undefined
          ? ensemble.labels('detections')
          : readLabelsFile(`${repository}/m/labels.txt`)
      const names = new Map<number, string>()
      const values = valuesOf(rows)
      for (let at = 0; at < values.length; at += 6)
        names.set(rawOf(values[at + 4]!), lines[values[at + 5]!] ?? `class_${values[at + 5]}`)
      return { names }
    } finally {
      await ensemble.stop(5_000)
    }
  } catch (error) {
    return { refused: toErrorRecord(error) }
  }
}

const systems = { cameras, clients }
const real = ['helmet', 'head', 'person']
const text = (names: readonly string[]) => `${names.join('\n')}\n`
const numbers = (from: number, names: readonly string[]) =>
  new Map(names.map((name, index) => [from + index, name]))

const lists: Readonly<Record<string, readonly string[]>> = {
  'as trained': real,
  'torchvision, __background__ first': ['__background__', ...real],
  'N/A first': ['N/A', ...real],
  'no-object last': [...real, 'no-object'],
  'background at both ends': ['background', ...real, 'no object'],
  'one too few': real.slice(0, 2),
  'one too many': [...real, 'vest'],
  'background first and one too few': ['background', ...real.slice(0, 2)],
  'background first and one too many': ['background', ...real, 'vest'],
  'with gaps': ['helmet', 'N/A', 'head', 'N/A', 'N/A', 'person'],
  'background first, with gaps': ['__background__', 'helmet', 'N/A', 'head', 'N/A', 'N/A', 'person'],
}

/** Heads with three classes; `truth` is what each channel or class id stands for. */
type Case = Readonly<{
  head: string
  model: TellingModel
  truth: ReadonlyMap<number, string>
  /** Lists that must be understood; another one may be refused. */
  understood: readonly string[]
}>
const backgroundFirst = Object.keys(lists).filter((name) => / first$/.test(name) || /^torch/.test(name))
const backgroundLast = ['no-object last']
const cases: readonly Case[] = [
  ...Object.entries<TellingHead>(channelHeads).map(([head, make]) => ({
    head,
    model: make(3),
    truth: numbers(0, real),
    understood: [
      'as trained',
      ...[...backgroundFirst, ...backgroundLast, 'with gaps', 'background first, with gaps'],
    ],
  })),
  {
    head: 'SSD',
    model: backgroundHeads.SSD(4),
    truth: numbers(1, real),
    understood: ['as trained', ...backgroundFirst, 'with gaps', 'background first, with gaps'],
  },
  {
    head: 'DETR',
    model: backgroundHeads.DETR(4),
    truth: numbers(0, real),
    understood: ['as trained', ...backgroundLast],
  },
  ...(['torchvision', "TensorFlow's detection API", 'SSD with NMS'] as const).map((head) => ({
    head,
    model: idHeads[head]([1, 2, 3]),
    truth: numbers(1, real),
    understood: ['as trained', ...backgroundFirst, ...backgroundLast, 'one too few', 'one too many'],
  })),
  ...(['boxes, scores, labels', 'end-to-end'] as const).map((head) => ({
    head,
    model: idHeads[head]([0, 1, 2]),
    truth: numbers(0, real),
    understood: ['as trained', ...backgroundLast, 'one too few', 'one too many'],
  })),
]

/**
 * Lists that are right, line by line, for another model with the same outputs: ids with gaps, a YOLO model trained with the background as a
 * class, RT-DETR with a class more than DETR. Nothing in file or list tells that the model is not that one.
 */
function isRightForAnother(head: string, list: string): boolean {
  if (Object.hasOwn(idHeads, head)) return list.includes('gaps')
  if (head === 'DETR')
    return ['one too many', 'background first and one too few', 'background first and one too many'].includes(
      list,
    )
  if (head === 'RT-DETR logits') return list === 'one too few'
  return head !== 'SSD' && list === 'background first and one too few'
}

describe.each(Object.entries(systems))('%s', (_, tell) => {
  it.each(cases)(
    'R22: $head: the right name for every class, or a refusal that names the setting',
    async (given) => {
      for (const [name, list] of Object.entries(lists)) {
        if (isRightForAnother(given.head, name)) continue
        const told = await tell(given.model, { labels: text(list) })
        const where = `${given.head}, ${name}`
        if (told.refused === undefined) {
          const wrong = [...told.names!].filter(
            ([raw, label]) => given.truth.get(raw) !== label && !/^class_\d+$/.test(label),
          )
          expect(wrong, where).toEqual([])
          expect([...told.names!.keys()].sort(), where).toEqual([...given.truth.keys()])
          if (!name.includes('one too few'))
            expect([...told.names!.values()].join(), where).not.toContain('class_')
        } else {
          expect(given.understood, where).not.toContain(name)
          expect(told.refused, where).toMatchObject({ code: 'GANTRY_MODEL_LABELS' })
          expect(told.refused.hint, where).toMatch(/gantry\.head_(first_class|background|classes)/)
        }
      }
    },
    120_000,
  )

  it('COCO with its gaps, 91 lines, on the 80 channels of a YOLO model', async () => {
    const coco = Array.from({ length: 91 }, (_, id) =>
      id === 0 ? '__background__' : id % 9 === 0 ? 'N/A' : `thing ${id}`,
    )
    const things = coco.filter((name) => name.startsWith('thing'))
    const { names } = await tell(channelHeads.yolov8(things.length), { labels: text(coco) })
    expect([...names!].sort(([a], [b]) => a - b)).toEqual([...numbers(0, things)])
  })

  it.each(['torchvision', "TensorFlow's detection API"] as const)(
    '%s: ids with gaps by the lines of such a list',
    async (head) => {
      for (const first of [[], ['__background__']]) {
        const lines = [...first, 'helmet', 'N/A', 'head']
        const { names } = await tell(idHeads[head]([1, 3]), { labels: text(lines) })
        expect(names).toEqual(
          new Map([
            [1, 'helmet'],
            [3, 'head'],
          ]),
        )
      }
    },
  )

  it.each([
    ['end-to-end, ids that count the background', idHeads['end-to-end']([1, 2, 3]), 1, '0'],
    ['end-to-end, ids that do not', idHeads['end-to-end']([0, 1, 2]), 0, '-1'],
    ['boxes, ids that count the background', idHeads['boxes, scores, labels']([1, 2, 3]), 1, '0'],
    ['boxes, ids that do not', idHeads['boxes, scores, labels']([0, 1, 2]), 0, '-1'],
    ['YOLO, said to have no column for it', channelHeads.yolov8(3), 0, '-1'],
  ] as const)('%s: right with gantry.head_first_class', async (_, model, from, first) => {
    const labels = text(['__background__', ...real])
    const { names } = await tell(model, { labels, config: parameters({ head_first_class: first }) })
    expect(names).toEqual(numbers(from, real))
  })

  it.each([
    ['YOLO with a column before its classes', channelHeads.yolov8(4), 1, 'first', real],
    ['YOLO with a column behind its classes', channelHeads.yolov5(4), 0, 'last', real],
    ['YOLO-NAS as trained with the background', channelHeads['YOLO-NAS'](4), 1, 'first', real],
    ['SSD without a background', backgroundHeads.SSD(3), 0, 'none', real],
    ['SSD with the background last', backgroundHeads.SSD(4), 0, 'last', [...real, 'background']],
    [
      'RT-DETR with the background as class 0',
      channelHeads['RT-DETR logits'](4),
      1,
      'none',
      ['background', ...real],
    ],
  ] as const)('%s: right with gantry.head_background', async (title, model, from, background, list) => {
    const unit = title.startsWith('YOLO-NAS') ? { head_unit: 'px' } : {}
    const labels = text(list)
    expect((await tell(model, { labels })).refused?.hint).toContain('gantry.head_background')
    const { names } = await tell(model, {
      labels,
      config: parameters({ head_background: background, ...unit }),
    })
    expect(names).toEqual(numbers(from, real))
  })

  it('names in the metadata of the model: maps from 1 on, with gaps, with the background, and lists', async () => {
    const metadata = (names: string) => ({ names })
    const from1 = metadata("{1: 'helmet', 2: 'head', 3: 'person'}")
    const gaps = metadata("{0: 'helmet', 2: 'head', 5: 'person'}")
    const list = metadata("['background', 'helmet', 'head', 'person']")
    const of = async (model: TellingModel) => (await tell(model, {})).names ?? 'refused'
    for (const names of [from1, gaps, list])
      expect(await of(channelHeads.yolov8(3, names))).toEqual(numbers(0, real))
    for (const names of [from1, list])
      expect(await of(idHeads.torchvision([1, 2, 3], names))).toEqual(numbers(1, real))
    expect(await of(idHeads['end-to-end']([0, 2, 5], gaps))).toEqual(
      new Map([
        [0, 'helmet'],
        [2, 'head'],
        [5, 'person'],
      ]),
    )
    for (const names of [from1, list])
      expect(await of(idHeads['end-to-end']([0, 1, 2], names))).toBe('refused')
  })

  it('the 80 names of COCO are refused where its 90 numbers have gaps, and taken where the model is said to have none', async () => {
    const coco = Array.from({ length: 80 }, (_, i) =>
      i === 11 ? 'stop sign' : i === 79 ? 'toothbrush' : `thing ${i}`,
    )
    const model = idHeads.torchvision([1, 12, 80])
    const { refused } = await tell(model, { labels: text(coco) })
    expect(refused?.hint).toContain('gantry.head_first_class')
    const { names } = await tell(model, { labels: text(coco), config: parameters({ head_first_class: '1' }) })
    expect([...names!.values()].sort()).toEqual(['stop sign', 'thing 0', 'toothbrush'])
  })

  it.each([
    ['a class after the background', idHeads.torchvision([1, 2]), ['background', 'helmet', 'head'], '1'],
    ['more columns than labels', channelHeads.yolov8(3), real, '1'],
    ['fewer columns than labels', channelHeads.yolov8(3), [...real, 'vest'], '0'],
  ])('%s: a first class that cannot be is refused', async (_, model, list, first) => {
    const { refused } = await tell(model, {
      labels: text(list),
      config: parameters({ head_first_class: first }),
    })
    expect(refused).toMatchObject({ code: 'GANTRY_MODEL_LABELS' })
    expect(refused?.hint).toContain('gantry.head_first_class')
  })

  it('models without labels go on, with names that are made up', async () => {
    const numbered = (from: number) => numbers(from, ['class_0', 'class_1', 'class_2'])
    expect((await tell(channelHeads.yolov8(3), {})).names).toEqual(numbered(0))
    expect((await tell(backgroundHeads.SSD(4), {})).names).toEqual(numbered(1))
    expect((await tell(idHeads.torchvision([1, 2, 3]), {})).names).toEqual(numbered(1))
    expect((await tell(idHeads['end-to-end']([0, 1, 2]), {})).names).toEqual(numbered(0))
  })
})

it("clients: an ensemble's own list names its detections, whatever the detector's is", async () => {
  const own = ['background', 'Helm', 'Kopf', 'Mensch']
  for (const labels of [undefined, text(real), text(['__background__', ...real])]) {
    const { names } = await clients(
      idHeads.torchvision([1, 2, 3]),
      labels === undefined ? {} : { labels },
      own,
    )
    expect(names).toEqual(numbers(1, own.slice(1)))
  }
  const { refused } = await clients(channelHeads.yolov8(3), { labels: text(real) }, ['Helm', 'Kopf'])
  expect(refused).toMatchObject({
    code: 'GANTRY_MODEL_LABELS',
    message: expect.stringContaining('ensemble "e"') as string,
  })
})

it('clients: a detection head of its own is read by the labels.txt in its folder', () => {
  const config = parseModelConfig(
    `backend: "detection_head"
     input { name: "boxes" data_type: TYPE_FP32 dims: [ -1, 4 ] }
     input { name: "scores" data_type: TYPE_FP32 dims: [ -1 ] }
     input { name: "labels" data_type: TYPE_INT64 dims: [ -1 ] }
     ${parameters({ input_size: '64x64' })}`,
    'c',
  )
  const binding = headParameters('h', config, ['__background__', ...real])
  expect(binding?.plan.lines).toEqual([-1, 1, 2, 3])
})

describe('a class that the list does not account for', () => {
  const twice = async (model: TellingModel, labels: readonly string[], config = '') => {
    const repositoryDir = repositoryOf(model, { labels: text(labels), config })
    const rig = await startDetector({ repositoryDir, ensemble: 'm', inference: { instances: 1 } })
    for (const seq of [1, 2]) await rig.detect(rig.frame('cam', seq))
    const { result } = rig.outcomes.at(-1)!
    return {
      labels: result?.detections.map(({ label }) => label),
      told: rig.logLines.filter(({ msg }) => String(msg).includes('gantry.head_first_class')),
    }
  }

  it('is published under a number, and told once', async () => {
    const model = idHeads['end-to-end']([0, 1, 7])
    const { labels, told } = await twice(model, ['helmet', 'N/A'])
    expect(labels).toEqual(['helmet', 'class_1', 'class_7'])
    expect(told.map((line) => line.class)).toEqual([1, 7])
  })

  it('that comes before the first one is left out, and told once', async () => {
    const { labels, told } = await twice(idHeads.torchvision([0, 1]), ['helmet', 'head'])
    expect(labels).toEqual(['helmet'])
    expect(told).toMatchObject([{ level: 50, firstClass: 1 }])
  })

  it('and the background that the list names is neither published nor told', async () => {
    const { labels, told } = await twice(idHeads.torchvision([0, 1]), ['background', 'helmet'])
    expect(labels).toEqual(['helmet'])
    expect(told).toEqual([])
  })

  it.each([
    ['no number', Number.NaN, []],
    ['a number beyond 16 bits', 65_537, ['class_65535']],
  ])('%s is no class of the list', async (_, id, expected) => {
    const model = idHeads['end-to-end']([id], {}, 0.9)
    expect((await twice(model, ['helmet', 'head'])).labels).toEqual(expected)
  })
})
