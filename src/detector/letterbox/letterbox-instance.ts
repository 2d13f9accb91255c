import { inputShape } from '../input-tensor.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { BackendInstance, BatchResult, Execution } from '../../runtime/backend.js'
import { dataOf, float32Tensor, type Tensor } from '../../tensors/tensor.js'
import { ServingError } from '../../tensors/serving-error.js'
import { eachAlone } from '../../backends/each-alone.js'
import type { WorkerInstance } from '../../backends/worker-instance.js'
import { type LetterboxPlan, pixelType } from './letterbox-parameters.js'
import { type Letterboxed, letterboxPicture } from './letterbox-picture.js'
import type { LetterboxAnswer, LetterboxJob, LetterboxLoad } from './letterbox-protocol.js'

export class LetterboxInstance implements BackendInstance {
  readonly exited?: Promise<Error>

  constructor(
    readonly plan: LetterboxPlan,
    readonly batched: boolean,
    readonly worker: WorkerInstance<LetterboxLoad, LetterboxJob, LetterboxAnswer> | undefined,
  ) {
    if (worker !== undefined) this.exited = worker.exited
  }

  execute(batch: readonly Execution[]): Promise<BatchResult> {
    return eachAlone(batch, nowMs, (execution) => this.#run(execution))
  }

  async close(): Promise<void> {
    await this.worker?.close()
  }

  async #run({ inputs, outputs }: Execution): Promise<readonly Tensor[]> {
    const pictures = await Promise.all(this.#pictures(inputs.get('image')))
    const { size } = this.plan
    const frames = pictures.length
    const sizes = BigInt64Array.from({ length: frames * 2 }, (_, at) =>
      BigInt(at % 2 === 0 ? size.widthPx : size.heightPx),
    )
    return [
      {
        name: 'pixels',
        datatype: pixelType(this.plan),
        shape: inputShape(this.plan, frames),
        ...(await this.#pixels(pictures)),
      },
      float32Tensor(
        'geometry',
        [frames, 5],
        Float32Array.from(pictures.flatMap((picture) => picture.geometry)),
      ),
      { name: 'size', datatype: 'INT64', shape: [frames, 2], data: dataOf(sizes) },
      ...(outputs.includes('frame') ? [this.#frame(pictures)] : []),
    ]
  }

  #frame(pictures: readonly Letterboxed[]): Tensor {
    const { widthPx, heightPx } = this.plan.size
    const shape = [...(this.batched ? [pictures.length] : []), heightPx, widthPx, 3]
    return { name: 'frame', datatype: 'UINT8', shape, data: bytesOf(pictures) }
  }

  #pictures(image: Tensor | undefined): Promise<Letterboxed>[] {
    const shape = this.batched ? (image?.shape.slice(1) ?? []) : (image?.shape ?? [])
    const [heightPx = 0, widthPx = 0, channels] = shape
    if (image === undefined || shape.length !== 3 || channels !== 3 || heightPx < 1 || widthPx < 1)
      throw new ServingError(
        'INVALID_ARG',
        `letterbox: input "image" is [${image?.shape.join(',') ?? ''}], but a picture is [height,width,3]`,
      )
    const bytes = heightPx * widthPx * 3
    return Array.from({ length: image.data.byteLength / bytes }, (_, index) =>
      letterboxPicture(
        image.data.subarray(index * bytes, (index + 1) * bytes),
        { widthPx, heightPx },
        this.plan,
      ),
    )
  }

  async #pixels(pictures: readonly Letterboxed[]): Promise<Pick<Tensor, 'data' | 'movable'>> {
    const { worker } = this
    if (worker === undefined) return { data: bytesOf(pictures) }
    // Memory that libvips has allocated cannot be transferred.
    const buffers = pictures.map(({ rgbHwc }) => Uint8Array.from(rgbHwc).buffer)
    const { pixels } = await worker.run({ pictures: buffers }, buffers)
    return { data: new Uint8Array(pixels), movable: true }
  }
}

/** One after another; a single one is not copied. */
function bytesOf(pictures: readonly Letterboxed[]): Uint8Array {
  const [only, ...others] = pictures
  if (only !== undefined && others.length === 0) return only.rgbHwc
  return new Uint8Array(Buffer.concat(pictures.map(({ rgbHwc }) => rgbHwc)))
}
