import type { InputPlan } from '../../detector/input-tensor.js'
import { elementType, isInterleaved } from '../../detector/input-tensor.js'
import type { GraphNode } from '../../repository/onnx-writer.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { EditableGraph } from './editable-graph.js'
import { type PictureReader, pictureReaders } from './picture-channels.js'
import { ModelTransformError } from './transform-error.js'
import { nodeName, withInputs } from './whole-node.js'

/** Names of what is added begin so. */
const prefix = 'gantry_picture'

/**
 * Lets a model take the bytes of a picture, uint8 `[N, H, W, 3]`, RGB, in place of the float tensor that is made of them: the factor of each
 * channel and their order go into the weights of the convolutions that read the picture, and so does the mean where nothing pads the
 * picture before them; else it is taken off in one node, since padding is 0 behind it.
 *
 * @param plan - how the float tensor is made of a picture.
 * @returns bytes of the model.
 * @throws ModelTransformError where the input is no float picture, a node before the first convolution does not go with a factor, there is
 *   no convolution, or its weights are not constant float32
 */
export function foldPreprocessing(path: string, plan: InputPlan, tensor: ModelTensor): Uint8Array {
  if (elementType(plan.layout) !== 'float32')
    throw new ModelTransformError(
      `input "${plan.name}" is ${plan.layout}: ${isOfBytes(plan) ? 'the model takes bytes already' : 'only float32 can be folded'}`,
      isOfBytes(plan) ? 'Leave out the step fold.' : 'Fold before float16.',
    )
  const graph = new EditableGraph(path)
  graph.refuseQuantised('fold')
  const pixels = `${prefix}/pixels`
  const axis = isInterleaved(plan.layout) ? 3 : 1
  // Also the size of the picture is read of what it was.
  graph.rename(plan.name, pixels)
  const { readers, keepsOffset } = pictureReaders(graph, pixels, axis)
  const { factor, offset } = affine(plan)
  const isBgr = plan.channels === 'bgr'
  const swaps = isBgr && readers.every(readsAllChannels)
  for (const reader of readers) foldInto(graph, reader, factor, keepsOffset ? offset : [0, 0, 0], swaps)
  const means = offset.map((value, channel) => -value / factor[channel]!)
  graph.setInput({ name: plan.name, type: 'uint8', shape: interleavedShape(tensor, axis) })
  graph.prepend(
    entrance(graph, plan.name, pixels, axis, {
      reorders: isBgr && !swaps,
      subtract: keepsOffset ? [0, 0, 0] : swaps ? means.toReversed() : means,
    }),
  )
  return graph.finished()
}

function isOfBytes({ layout }: InputPlan): boolean {
  return layout.includes('int8')
}

function interleavedShape({ shape }: ModelTensor, axis: 1 | 3): ModelTensor['shape'] {
  if (axis === 3) return shape
  const [batch = 1, , height = 'height', width = 'width'] = shape
  return [batch, height, width, 3]
}

/** `value = byte * factor + offset`, for each channel of the tensor. */
function affine({ range, normalise }: InputPlan): { factor: number[]; offset: number[] } {
  const unit = range === '0-1' ? 1 / 255 : 1
  const of = (channel: number) => {
    const std = normalise?.std[channel] ?? 1
    return { factor: unit / std, offset: -(normalise?.mean[channel] ?? 0) / std }
  }
  const each = [0, 1, 2].map(of)
  return { factor: each.map((one) => one.factor), offset: each.map((one) => one.offset) }
}

/** Whether it reads all channels at once, so that their order is one of its weights. */
function readsAllChannels({ node, read }: PictureReader): boolean {
  return (node.attributes.get('group')?.whole ?? 1) === 1 && mirrored(read.channels) !== undefined
}

/** For each channel, where the same pixels of the mirrored channel of the picture are. */
function mirrored(channels: PictureReader['read']['channels']): readonly number[] | undefined {
  const places = channels.map(({ channel, pixels }) =>
    channels.findIndex((other) => other.channel === 2 - channel && other.pixels === pixels),
  )
  return places.includes(-1) ? undefined : places
}

type Entrance = Readonly<{
  /** The channels are turned round. */
  reorders: boolean
  /** From each channel, in bytes. */
  subtract: readonly number[]
}>

/** From bytes to the floats that the model had. @param axis - of its channels */
function entrance(
  graph: EditableGraph,
  input: string,
  pixels: string,
  axis: 1 | 3,
  { reorders, subtract }: Entrance,
): GraphNode[] {
  const nodes: GraphNode[] = []
  let last = input
  const add = (
    op: string,
    word: string,
    others: readonly string[],
    attributes: GraphNode['attributes'] = {},
  ) => {
    const output = `${prefix}/${word}`
    nodes.push({ op, inputs: [last, ...others], outputs: [output], attributes })
    last = output
  }
  if (axis === 1) add('Transpose', 'planes', [], { perm: [0, 3, 1, 2] })
  add('Cast', 'floats', [], { to: 1 })
  if (reorders)
    add('Gather', 'ordered', [graph.addConstant(`${prefix}/order`, [3], BigInt64Array.of(2n, 1n, 0n))], {
      axis,
    })
  if (subtract.some((value) => value !== 0)) {
    const shape = axis === 1 ? [1, 3, 1, 1] : [3]
    add('Sub', 'centred', [graph.addConstant(`${prefix}/mean`, shape, Float32Array.from(subtract))])
  }
  return nodes.map((node, at) => (at === nodes.length - 1 ? { ...node, outputs: [pixels] } : node))
}

/** @param factor - for each channel of the picture as the model had it; so `offset`, which goes into the bias. */
function foldInto(
  graph: EditableGraph,
  { node, read }: PictureReader,
  factor: readonly number[],
  offset: readonly number[],
  swap: boolean,
): void {
  const [input = '', weightName = '', biasName = ''] = node.given
  const weight = graph.numbers(weightName)
  if (weight?.type !== 'float32')
    throw new ModelTransformError(
      `preprocessing cannot be folded into convolution "${nodeName(node)}": its weights "${weightName}" are ${weight === undefined ? 'not constant' : weight.type}`,
      'Fold before float16 and int8, and export the model with constant weights.',
    )
  const [outputs = 0, perGroup = 0, ...kernel] = weight.shape
  const group = node.attributes.get('group')?.whole ?? 1
  const window = kernel.reduce((product, size) => product * size, 1)
  const places = swap ? mirrored(read.channels)! : read.channels.map((_, at) => at)
  const before = weight.values as Float32Array
  const after = new Float32Array(before.length)
  const shift = new Float64Array(outputs)
  for (let output = 0; output < outputs; output++) {
    const first = Math.floor(output / (outputs / group)) * perGroup
    for (let at = 0; at < perGroup; at++) {
      const { channel } = read.channels[first + at]!
      const to = group === 1 ? places[at]! : at
      for (let k = 0; k < window; k++) {
        const value = before[(output * perGroup + at) * window + k]!
        after[(output * perGroup + to) * window + k] = value * factor[channel]!
        shift[output]! += value * offset[channel]!
      }
    }
  }
  const name = graph.addConstant(`${prefix}/${weightName}`, weight.shape, after)
  graph.replace(
    node,
    withInputs(node, [
      input,
      name,
      ...biased(graph, node.given[2] === undefined ? undefined : biasName, shift),
    ]),
  )
}

/** The bias with what it gains, where it gains anything. */
function biased(graph: EditableGraph, name: string | undefined, shift: Float64Array): readonly string[] {
  if (shift.every((value) => value === 0)) return name === undefined ? [] : [name]
  const before = name === undefined || name === '' ? undefined : graph.numbers(name)?.values
  const after = Float32Array.from(shift, (value, at) => value + (before?.[at] ?? 0))
  return [graph.addConstant(`${prefix}/bias`, [after.length], after)]
}
