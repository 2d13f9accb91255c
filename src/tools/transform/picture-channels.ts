import type { EditableGraph } from './editable-graph.js'
import { ModelTransformError } from './transform-error.js'
import { nodeName, type WholeNode } from './whole-node.js'

/**
 * What a tensor has of the picture: for each place along its channel axis, which channel of the picture is there, and from which pixels of
 * it, as a text that is equal where they are the same ones.
 */
export type PictureChannels = Readonly<{
  axis: number
  channels: readonly Readonly<{ channel: number; pixels: string }>[]
}>

/** A convolution that reads the picture, and what lies at its inputs' channels. */
export type PictureReader = Readonly<{ node: WholeNode; read: PictureChannels }>

/** All convolutions that read the picture, and whether what lies before them keeps a constant that is added to every pixel. */
export type PictureReaders = Readonly<{ readers: readonly PictureReader[]; keepsOffset: boolean }>

/** What gives pixels on as they are. */
const passing = new Set(['Identity', 'Cast'])
/** What mixes or leaves out pixels of a channel, channel by channel, in a way that goes with a factor before or behind it. */
const mixing = new Set(['AveragePool', 'MaxPool', 'Resize', 'Upsample', 'Relu', 'LeakyRelu'])

/**
 * Follows the picture from the input to the convolutions that read it.
 *
 * @param axis - of the channels of `tensor`.
 * @throws ModelTransformError naming the first node that reads the picture and is neither a convolution nor may stand before one
 */
export function pictureReaders(graph: EditableGraph, tensor: string, axis: number): PictureReaders {
  const known = new Map<string, PictureChannels>([
    [tensor, { axis, channels: [0, 1, 2].map((channel) => ({ channel, pixels: '' })) }],
  ])
  const readers: PictureReader[] = []
  let keepsOffset = true
  for (const node of graph.nodes) {
    const [first = ''] = node.given
    const at = node.inputs.find((name) => known.has(name))
    // The size of the picture is none of its values.
    if (at === undefined || node.op === 'Shape') continue
    const read = known.get(first)
    if (node.op === 'Conv' && read !== undefined && read.axis === 1) {
      readers.push({ node, read })
      if (hasPadding(node)) keepsOffset = false
      continue
    }
    const [output = ''] = node.outputs
    known.set(output, passed(graph, node, known))
    if (mixing.has(node.op) || node.op === 'Pad') keepsOffset = false
  }
  if (readers.length === 0)
    throw new ModelTransformError(
      'no convolution reads the picture, so there is none that preprocessing could be folded into',
      'Leave out the step fold.',
    )
  return { readers, keepsOffset }
}

function passed(
  graph: EditableGraph,
  node: WholeNode,
  known: ReadonlyMap<string, PictureChannels>,
): PictureChannels {
  const read = known.get(node.given[0] ?? '')
  if (node.op === 'Concat') return joined(node, known)
  if (read === undefined) throw refused(node)
  const within = {
    ...read,
    channels: read.channels.map((each) => ({ ...each, pixels: `${each.pixels}/${node.outputs[0]}` })),
  }
  if (passing.has(node.op)) return read
  if (mixing.has(node.op)) return within
  switch (node.op) {
    case 'Transpose': {
      const order = node.attributes.get('perm')?.wholes ?? []
      const axis = order.indexOf(read.axis)
      if (axis < 0) throw refused(node)
      return { ...read, axis }
    }
    case 'Slice': {
      const axes =
        node.attributes.get('axes')?.wholes ?? graph.numbers(node.given[3] ?? '')?.values ?? undefined
      if (axes === undefined || Array.from(axes).some((axis) => axis === read.axis || axis < 0))
        throw refused(node)
      return within
    }
    case 'SpaceToDepth': {
      const block = node.attributes.get('blocksize')?.whole ?? 1
      const patches = Array.from({ length: block * block }, (_, patch) => patch)
      return {
        axis: read.axis,
        channels: patches.flatMap((patch) =>
          read.channels.map(({ channel, pixels }) => ({
            channel,
            pixels: `${pixels}/${node.outputs[0]}/${patch}`,
          })),
        ),
      }
    }
    case 'Mul':
    case 'Div': {
      const factor = graph.numbers(node.given[1] ?? '')
      if (factor === undefined || factor.values.length !== 1 || !((factor.values[0] ?? 0) > 0))
        throw refused(node)
      return within
    }
    case 'Pad': {
      const mode = node.attributes.get('mode')?.text ?? 'constant'
      const value =
        node.given[2] === undefined || node.given[2] === '' ? 0 : graph.numbers(node.given[2])?.values[0]
      if (mode === 'constant' && value !== 0) throw refused(node)
      return within
    }
    default:
      throw refused(node)
  }
}

function joined(node: WholeNode, known: ReadonlyMap<string, PictureChannels>): PictureChannels {
  const parts = node.given.map((name) => known.get(name))
  const axis = node.attributes.get('axis')?.whole
  const channels = parts.flatMap((part) => {
    if (part === undefined || part.axis !== axis) throw refused(node)
    return part.channels
  })
  return { axis: parts[0]?.axis ?? 1, channels }
}

function hasPadding({ attributes }: WholeNode): boolean {
  const auto = attributes.get('auto_pad')?.text ?? 'NOTSET'
  return (
    (attributes.get('pads')?.wholes ?? []).some((pad) => pad !== 0) || !['NOTSET', 'VALID'].includes(auto)
  )
}

function refused(node: WholeNode): ModelTransformError {
  return new ModelTransformError(
    `preprocessing cannot be folded: node "${nodeName(node)}" (${node.op}) does with the picture what a factor for each channel cannot be taken through`,
    'Only what moves, pools or scales pixels may stand before the first convolution. Export the model without this node, or leave out the step fold.',
  )
}
