import ort from '../../backends/onnxruntime/onnxruntime.js'
import { ortTensor } from '../../backends/onnxruntime/ort-tensor.js'
import { inputShape, type PixelArray, pixelArray } from '../../detector/input-tensor.js'
import { outputNumbers } from '../split/compare-stages.js'
import { feed, pictureAt, type Pictures } from './frames.js'
import { batchOf, prove, type Proof, type Side } from './prove.js'
import { ModelTransformError } from './transform-error.js'

/** Pictures of a batch whose size is free. */
const usualBatch = 3

/**
 * Proves another batch: that the model says what the original says of a picture, and of each picture of a batch what it says of that picture
 * alone, which is in all places of a batch of fixed size.
 *
 * @throws ModelTransformError naming the output that differs, and by how much
 */
export async function proveBatch(
  step: string,
  original: Side,
  transformed: Side,
  pictures: Pictures,
  tolerance: number,
): Promise<Proof> {
  const after = likeIts(original, transformed)
  const proof = await prove(step, original, after, pictures, 'largest relative difference', tolerance)
  const { picture } = after.plan
  if (picture === undefined) return proof
  const { plan, tensor } = picture
  const isFree = typeof tensor.shape[0] !== 'number'
  const size = isFree ? Math.min(usualBatch, pictures.paths.length) : batchOf(after)
  const fed = await Promise.all(
    Array.from({ length: size }, async (_, at) =>
      feed(plan, await pictureAt(pictures.paths[at % pictures.paths.length]!)),
    ),
  )
  const session = await ort.InferenceSession.create(after.path, { logSeverityLevel: 4 })
  const run = async (values: readonly PixelArray[]) => {
    const length = values[0]!.length
    const all = new (pixelArray(plan.layout))(length * values.length)
    for (const [at, each] of values.entries()) all.set(each, at * length)
    return session.run({
      [plan.name]: ortTensor(tensor.type as ort.Tensor.Type, all, inputShape(plan, values.length)),
    })
  }
  try {
    const together = await run(fed.map(({ values }) => values))
    let measured = proof.measured
    for (const [at, { values }] of fed.entries())
      for (const [name, alone] of Object.entries(await run(isFree ? [values] : fed.map(() => values)))) {
        const difference = relativeDifference(
          outputNumbers(alone),
          outputNumbers(together[name]!),
          isFree ? 1 : size,
          at,
        )
        if (!(difference <= tolerance))
          throw new ModelTransformError(
            `${step} cannot be done: output "${name}" of a picture in a batch differs from that of the picture alone by ${difference.toPrecision(2)} of its largest value`,
            'A node mixes the pictures of a batch, as DynamicQuantizeLinear does with its one scale. Export the model with a free batch.',
          )
        measured = Math.max(measured, difference)
      }
    return { ...proof, measured, on: `${proof.on}, alone and ${fed.length} at once` }
  } catch (error) {
    if (error instanceof ModelTransformError) throw error
    throw new ModelTransformError(
      `${step} cannot be done: the model does not run with ${fed.length} pictures at once: ${(error instanceof Error ? error.message : String(error)).split('\n')[0]}`,
      'Something in the graph is made for one picture. Export the model with a free batch.',
      error,
    )
  } finally {
    await session.release()
  }
}

/** Fed with pictures as its original is: a head is known by shapes, and those of several rows are no camera's. */
function likeIts(original: Side, { path, plan }: Side): Side {
  if (plan.picture === undefined || original.plan.picture === undefined) return { path, plan }
  return { path, plan: { ...plan, picture: { ...plan.picture, plan: original.plan.picture.plan } } }
}

/** @param rows - of `alone`, which are all of one picture. @param at - its place in the batch. */
function relativeDifference(
  alone: ArrayLike<number | bigint>,
  together: ArrayLike<number | bigint>,
  rows: number,
  at: number,
): number {
  const length = alone.length / rows
  if (together.length < length * (at + 1)) return Infinity
  let difference = 0
  let scale = 1e-12
  for (let i = at * length; i < (at + 1) * length; i++) {
    const value = Number(alone[rows === 1 ? i - at * length : i])
    difference = Math.max(difference, Math.abs(value - Number(together[i])))
    scale = Math.max(scale, Math.abs(value))
  }
  return difference / scale
}
