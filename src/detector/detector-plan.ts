import type { SizePx } from '../vision/letterbox.js'
import { ModelConfigError, ModelInvalidError } from '../repository/errors.js'
import { type ModelConfig, parameterOf } from '../repository/model-config.js'
import { knownOutputs } from '../repository/match-tensors.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import { describeTensor, type ModelTensor } from '../tensors/tensor.js'
import { exclusiveGroups } from './exclusive-labels.js'
import { withClassLines } from './heads/class-lines.js'
import { createHead } from './heads/create-head.js'
import { type HeadKind, type HeadPlan, outputsOf } from './heads/head.js'
import { headSettings, numberList } from './heads/head-settings.js'
import { labelsGivenTwice } from './heads/label-list.js'
import { recogniseHead } from './heads/recognise-head.js'
import {
  asksForRect,
  type CameraShapes,
  freeSize,
  inputSize,
  sameSize,
  type SizeChoice,
  type SizedInput,
  sizeForCameras,
  type SizeParameter,
  sizeText,
} from './input-size.js'
import { type ElementType, type InputLayout, type InputPlan, isInterleaved } from './input-tensor.js'
import { choice } from '../repository/parameter-choice.js'

/** More than a frame has that reach any threshold of use, and a part of the cells of a grid. */
const usualTopRows = 1_000

/** What is looked at of a model to find out how it detects; {@link OnnxModel} has it. */
export type DetectorModel = Readonly<
  Pick<OnnxModel, 'name' | 'config' | 'configuredMaxBatchSize' | 'labels' | 'labelsFrom'> & {
    onnx: Pick<OnnxModel['onnx'], 'inputs' | 'outputs' | 'metadata'>
  }
>

/** How a detector model is fed and read. */
export type DetectorPlan = Readonly<{
  input: InputPlan
  /** What decided the size of the input, for people. */
  sizeFrom: string
  /** Where the cameras decided it: the size that the model was exported with, which it is run at if it does not run at theirs. */
  exportedSize?: SizePx
  head: HeadPlan
  /** Most rows of the head that a GPU hands over for a frame; 0: all. */
  topRows: number
  /** Names of the classes; made up where the model has none. */
  labels: readonly string[]
  /** Most frames the model can take in one run. */
  maxBatchSize: number
  /** What the reader should know. */
  notes: readonly string[]
}>

/**
 * Works out from a model's file and configuration how to use it as a detector, without running it.
 *
 * Parameters that override what is recognised are in docs/models.md.
 *
 * @param shapes - of the cameras, which decide the size where the model leaves it open and `gantry.input_size` is `rect`; absent: it is the
 *   one of the export.
 * @throws ModelInvalidError, HeadUnknownError, ModelLabelsError, ModelConfigError: each says which tensor or parameter, and
 * what was expected.
 */
export function planDetector(model: DetectorModel, shapes?: CameraShapes): DetectorPlan {
  const { layout, ...picture } = sizedPicture(model)
  const head = planHead(model, picture.size)
  const { labels, notes } = labelsFor(model, head)
  const { name, size } = picture
  const plan: DetectorPlan = {
    input: { name, layout, size, ...conventions(model, head.kind), ...sizeInput(model) },
    sizeFrom: picture.from,
    head,
    topRows: headSettings(model.name, model.config).topRows ?? usualTopRows,
    labels,
    maxBatchSize: hasBatch(model, head) ? batchLimit(model, imageInput(model).tensor) : 1,
    notes,
  }
  return shapes === undefined ? plan : forCameras(model, plan, shapes)
}

/** Whether the shapes of the cameras decide the size of the input. @throws ModelInvalidError */
export function isSizedByCameras(model: DetectorModel): boolean {
  return asksForRect(model.config) && !('fixedBy' in freeSize(sizedInput(model)))
}

/** Only the size is another: a model whose outputs are those of one size does not leave it open, whatever its input says. */
function forCameras(model: DetectorModel, plan: DetectorPlan, shapes: CameraShapes): DetectorPlan {
  const { input, head, notes, sizeFrom } = plan
  const free = freeSize(sizedInput(model))
  const isAsked = asksForRect(model.config)
  const notRect = (why: string): DetectorPlan => {
    const note = `model "${model.name}": gantry.input_size is "rect", but ${why}: it runs at ${sizeText(input.size)}`
    return isAsked ? { ...plan, notes: [...notes, note] } : plan
  }
  if ('fixedBy' in free) return notRect(free.fixedBy)
  const { size, from } = sizeForCameras(free, shapes)
  if (!isSameHead(model, head, size)) return notRect(`its outputs are not those of ${sizeText(size)}`)
  if (isAsked)
    return sameSize(size, input.size)
      ? { ...plan, sizeFrom: from }
      : { ...plan, input: { ...input, size }, sizeFrom: from, exportedSize: input.size }
  if (parameterOf(model.config, 'gantry.input_size') !== undefined) return plan
  return {
    ...plan,
    sizeFrom: `${sizeFrom}; it leaves its size free: gantry.input_size "rect" runs it at ${sizeText(size)}`,
  }
}

/** Whether the outputs would be read alike, if the model had been exported with that size. */
function isSameHead(model: DetectorModel, head: HeadPlan, size: SizePx): boolean {
  try {
    const { reason: _, ...there } = planHead(model, size)
    const { reason: __, ...here } = head
    return JSON.stringify(there) === JSON.stringify(here)
  } catch {
    return false
  }
}

/**
 * The image input of a model: its name, layout and size.
 *
 * @param key - of the parameter that gives the size where the model leaves it open.
 * @param given - the size where nothing but the exporter says it.
 * @throws ModelInvalidError, ModelConfigError
 */
export function planPicture(
  model: DetectorModel,
  key: SizeParameter = 'gantry.input_size',
  given?: SizePx,
): Pick<InputPlan, 'name' | 'layout' | 'size'> {
  const { name, layout, size } = sizedPicture(model, key, given)
  return { name, layout, size }
}

function sizedPicture(
  model: DetectorModel,
  key: SizeParameter = 'gantry.input_size',
  given?: SizePx,
): Pick<InputPlan, 'name' | 'layout'> & SizeChoice {
  const { tensor, layout } = imageInput(model)
  return { name: tensor.name, layout, ...inputSize(sizedInput(model), key, given) }
}

function sizedInput(model: DetectorModel): SizedInput {
  const { tensor, layout } = imageInput(model)
  const { name, config, onnx } = model
  return { name, config, metadata: onnx.metadata, tensor, heightAt: isInterleaved(layout) ? 1 : 2 }
}

/** How the outputs of a model are to be read, for pictures of that size. @throws HeadUnknownError, ModelLabelsError, ModelConfigError */
export function planHead(model: DetectorModel, input: SizePx): HeadPlan {
  const settings = headSettings(model.name, model.config)
  const exclusive = exclusiveGroups(model.name, model.config, model.labels)
  const plan = recogniseHead({
    settings,
    model: model.name,
    input,
    outputs: knownOutputs(model.config, model.onnx),
    labels: model.labels?.length,
    names: model.labels,
    explicit: settings.kind,
  })
  const { name, labels, labelsFrom } = model
  const named = withClassLines(plan, { model: name, labels, labelsFrom, settings })
  checkShapes(named, input, model)
  return { ...named, ...(exclusive === undefined ? {} : { exclusive }) }
}

/** What a first run would find: where the file tells the shapes of the outputs, their decoder is made of them. @throws TensorShapeError */
function checkShapes(plan: HeadPlan, input: SizePx, { config, onnx }: DetectorModel): void {
  const outputs = knownOutputs(config, onnx)
  const shapes = outputsOf(plan).map((name) => {
    const [batch = 1, ...others] = outputs.find((output) => output.name === name)?.shape ?? []
    return [typeof batch === 'number' ? batch : 1, ...others]
  })
  const told = shapes.map((shape) => shape.filter((size) => typeof size === 'number'))
  if (told.every((sizes, at) => sizes.length === shapes[at]!.length)) createHead(plan, input, told)
}

function imageInput(model: DetectorModel): { tensor: ModelTensor; layout: InputLayout } {
  const expected = `expected an image: ${pixelTypes.join(', ')} [N, 3, H, W] or [N, H, W, 3]`
  const { inputs } = model.onnx
  const images = inputs.flatMap((tensor) => {
    const layout = layoutOf(tensor)
    return layout === undefined ? [] : [{ tensor, layout }]
  })
  const [image, ...others] = images
  const all = inputs.map((input) => `"${input.name}" ${describeTensor(input)}`).join(', ')
  const other = inputs.find((input) => image === undefined && channelsOf(input) !== undefined)
  if (other !== undefined)
    throw new ModelInvalidError(
      `model "${model.name}": input "${other.name}" is a picture in ${other.type}, which cameras do not write; ${expected}`,
      'Export the model with a float32 input, or put a Cast behind the input that takes float32.',
    )
  const tooMany = others.length > 0 || inputs.some((input) => input !== image?.tensor && !isSizeInput(input))
  if (image === undefined && inputs.length === 1)
    throw new ModelInvalidError(
      `model "${model.name}": input ${all} is not an image; ${expected}`,
      'Export the model with an input of one of these forms.',
    )
  if (image === undefined || tooMany)
    throw new ModelInvalidError(
      `model "${model.name}" has ${inputs.length} inputs: ${all || 'none'}; ${expected}, and at most one more: the picture's size, [N, 2]`,
      'Export the detector with one image input.',
    )
  return image
}

/** An input that is told how large the picture is, such as `orig_target_sizes`. */
function isSizeInput({ name, type, shape }: ModelTensor): boolean {
  return (
    shape.length === 2 &&
    shape[1] === 2 &&
    (type === 'int64' || type === 'int32' || type === 'float32') &&
    /size|shape/i.test(name)
  )
}

function sizeInput(model: DetectorModel): Pick<InputPlan, 'sizeInput'> {
  const tensor = model.onnx.inputs.find(isSizeInput)
  if (tensor === undefined) return {}
  const order = choice(model.name, model.config, 'gantry.size_order', ['wh', 'hw'])
  return {
    sizeInput: {
      name: tensor.name,
      type: tensor.type as 'int64' | 'int32' | 'float32',
      order: order ?? (tensor.name === 'orig_target_sizes' ? 'wh' : 'hw'),
    },
  }
}

const pixelTypes = [
  'float32',
  'float16',
  'float64',
  'uint8',
  'int8',
] as const satisfies readonly ElementType[]

function layoutOf(tensor: ModelTensor): InputLayout | undefined {
  const type = pixelTypes.find((each) => each === tensor.type)
  const channels = channelsOf(tensor)
  return type === undefined || channels === undefined ? undefined : `${type}-${channels}`
}

/** Where the colours of a picture are, if it may be one. */
function channelsOf({ shape }: ModelTensor): 'nchw' | 'nhwc' | undefined {
  if (shape.length !== 4) return undefined
  if (shape[1] === 3) return 'nchw'
  return shape[3] === 3 ? 'nhwc' : undefined
}

/**
 * What the kinds are trained with: YOLOX on BGR 0..255 with the picture at the top left, NanoDet on BGR with the mean
 * and deviation of ImageNet, PicoDet on RGB with the same, FastestDet on BGR 0..1, everyone else on RGB 0..1.
 */
export function conventions(
  model: DetectorModel,
  head: HeadKind | undefined,
): Pick<InputPlan, 'channels' | 'range' | 'align' | 'normalise'> {
  const { name, config } = model
  const usual = usualConventions(head)
  const channels = choice(name, config, 'gantry.color', ['rgb', 'bgr']) ?? usual.channels
  const range = choice(name, config, 'gantry.range', ['0-1', '0-255']) ?? usual.range
  const align = choice(name, config, 'gantry.letterbox', ['center', 'top-left']) ?? usual.align
  const normalise = normalisation(name, config) ?? usual.normalise
  return { channels, range, align, ...(normalise === undefined ? {} : { normalise }) }
}

function usualConventions(
  head: HeadKind | undefined,
): Pick<InputPlan, 'channels' | 'range' | 'align' | 'normalise'> {
  if (head === 'yolox') return { channels: 'bgr', range: '0-255', align: 'top-left' }
  if (head === 'fastestdet') return { channels: 'bgr', range: '0-1', align: 'center' }
  if (head === 'picodet')
    return {
      channels: 'rgb',
      range: '0-255',
      align: 'center',
      normalise: { mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, 57.375] },
    }
  if (head === 'nanodet')
    return {
      channels: 'bgr',
      range: '0-255',
      align: 'center',
      normalise: { mean: [103.53, 116.28, 123.675], std: [57.375, 57.12, 58.395] },
    }
  return { channels: 'rgb', range: '0-1', align: 'center' }
}

/** `gantry.mean` and `gantry.std`, three numbers each or one for all. */
export function normalisation(name: string, config: ModelConfig): InputPlan['normalise'] {
  const read = (key: 'gantry.mean' | 'gantry.std') => {
    const numbers = numberList(name, config, key)
    if (numbers === undefined || numbers.length === 3) return numbers
    const [only] = numbers
    if (numbers.length === 1 && only !== undefined) return [only, only, only]
    throw new ModelConfigError(
      `model "${name}": parameter ${key} has ${numbers.length} numbers`,
      'Give three, one for each channel in the order of the tensor, or one for all.',
    )
  }
  const mean = read('gantry.mean')
  const std = read('gantry.std')
  if (mean === undefined && std === undefined) return undefined
  return { mean: mean ?? [0, 0, 0], std: std ?? [1, 1, 1] }
}

function labelsFor({ name, labels }: DetectorModel, head: HeadPlan): Pick<DetectorPlan, 'labels' | 'notes'> {
  if (labels !== undefined) {
    const twice = labelsGivenTwice(labels)
    const note = `model "${name}" has labels that are given twice: ${twice.join(', ')}; their classes cannot be told apart`
    return { labels, notes: twice.length === 0 ? [] : [note] }
  }
  return {
    labels: Array.from({ length: head.classes ?? 0 }, (_, index) => `class_${index}`),
    notes: [`model "${name}" has no labels: classes are called class_0, class_1, ...; add a labels.txt`],
  }
}

/** Boxes without a batch dimension are those of one picture. */
function hasBatch({ onnx }: DetectorModel, head: HeadPlan): boolean {
  const shape = onnx.outputs.find(({ name }) => name === head.output)?.shape ?? []
  return !['boxes', 'nanodet', 'picodet'].includes(head.kind) || shape.length !== 2
}

/** A fixed batch dimension decides; else the configuration's `max_batch_size`; else there is no limit. */
function batchLimit(model: DetectorModel, tensor: ModelTensor): number {
  const fixed = tensor.shape[0]
  if (typeof fixed !== 'number') return model.configuredMaxBatchSize ?? Number.MAX_SAFE_INTEGER
  if (fixed === 1) return 1
  throw new ModelInvalidError(
    `model "${model.name}": input "${tensor.name}" ${describeTensor(tensor)} takes exactly ${fixed} frames in each run`,
    'Export the model with batch size 1 or a free batch dimension.',
  )
}
