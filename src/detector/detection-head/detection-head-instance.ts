import { nowMs } from '../../lifecycle/clock.js'
import type { BackendInstance, BatchResult, Execution } from '../../runtime/backend.js'
import { float32Tensor, type Tensor } from '../../tensors/tensor.js'
import { transferable } from '../../tensors/tensor-buffers.js'
import { ServingError } from '../../tensors/serving-error.js'
import { eachAlone } from '../../backends/each-alone.js'
import type { WorkerInstance } from '../../backends/worker-instance.js'
import {
  geometryLength,
  type HeadAnswer,
  type HeadJob,
  type HeadLoad,
  type HeadTensor,
} from './head-protocol.js'
import { rowLength } from '../detector-protocol.js'
import type { StrangeScores } from '../strange-scores.js'

export class DetectionHeadInstance implements BackendInstance {
  readonly exited: Promise<Error>

  /** @param names - of the inputs, in the order of the head's plan. */
  constructor(
    readonly names: readonly string[],
    readonly batched: boolean,
    readonly worker: WorkerInstance<HeadLoad, HeadJob, HeadAnswer>,
    readonly onStrange: (strange: StrangeScores) => void,
  ) {
    this.exited = worker.exited
  }

  execute(batch: readonly Execution[]): Promise<BatchResult> {
    return eachAlone(batch, nowMs, (execution) => this.#run(execution))
  }

  close(): Promise<void> {
    return this.worker.close()
  }

  async #run({ inputs }: Execution): Promise<readonly Tensor[]> {
    const tensors = this.names.map((name) => wanted(inputs, name))
    const geometry = geometryOf(wanted(inputs, 'geometry'))
    const pictures = geometry.length / geometryLength
    if (!this.batched && pictures !== 1)
      throw new ServingError(
        'INVALID_ARG',
        `detection_head: ${pictures} pictures at once need max_batch_size > 0 in the configuration of the ensemble`,
      )
    const outputs: HeadTensor[] = []
    for (const tensor of tensors) {
      const { datatype, shape } = tensor
      outputs.push({ datatype, shape, buffer: (await transferable(tensor)).buffer })
    }
    const { frames, strange } = await this.worker.run(
      { outputs, geometry },
      outputs.map((output) => output.buffer),
    )
    if (strange !== undefined) this.onStrange(strange)
    const [only = new Float32Array(0)] = frames
    return [
      this.batched ? padded(frames) : float32Tensor('detections', [only.length / rowLength, rowLength], only),
    ]
  }
}

function wanted(inputs: ReadonlyMap<string, Tensor>, name: string): Tensor {
  const tensor = inputs.get(name)
  if (tensor !== undefined) return tensor
  throw new ServingError('INVALID_ARG', `detection_head: input "${name}" is missing`)
}

function geometryOf({ data, shape }: Tensor): Float32Array {
  if (shape.at(-1) !== geometryLength)
    throw new ServingError(
      'INVALID_ARG',
      `detection_head: input "geometry" is [${shape.join(',')}], not [-1,5]`,
    )
  return new Float32Array(new Uint8Array(data).buffer)
}

/** Rows of all pictures, as many for each as the fullest has. */
function padded(frames: readonly Float32Array[]): Tensor {
  const most = Math.max(0, ...frames.map((rows) => rows.length))
  const values = new Float32Array(most * frames.length)
  frames.forEach((rows, frame) => {
    values.set(rows, frame * most)
    for (let at = rows.length + rowLength - 1; at < most; at += rowLength) values[frame * most + at] = -1
  })
  return float32Tensor('detections', [frames.length, most / rowLength, rowLength], values)
}
