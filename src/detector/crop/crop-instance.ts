import { nowMs } from '../../lifecycle/clock.js'
import type { BackendInstance, BatchResult, Execution } from '../../runtime/backend.js'
import type { Tensor } from '../../tensors/tensor.js'
import { transferable } from '../../tensors/tensor-buffers.js'
import { ServingError } from '../../tensors/serving-error.js'
import { eachAlone } from '../../backends/each-alone.js'
import type { WorkerInstance } from '../../backends/worker-instance.js'
import { geometryLength } from '../detection-head/head-protocol.js'
import { rowLength } from '../detector-protocol.js'
import { inputShape } from '../input-tensor.js'
import { pixelType } from '../letterbox/letterbox-parameters.js'
import { cropBytes, type CropPlan } from './crop-parameters.js'
import type { CropAnswer, CropJob, CropLoad } from './crop-protocol.js'

/** Largest tensor of crops: 3,000 of 224x224 in bytes, 800 in floats. */
const mostBytes = 512 * 1024 ** 2

export class CropInstance implements BackendInstance {
  readonly exited: Promise<Error>

  constructor(
    readonly plan: CropPlan,
    readonly worker: WorkerInstance<CropLoad, CropJob, CropAnswer>,
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
    const frame = wanted(inputs, 'frame')
    const [heightPx = 0, widthPx = 0, channels] = frame.shape
    if (frame.shape.length !== 3 || channels !== 3 || heightPx < 1 || widthPx < 1)
      throw refusal(`input "frame" is [${frame.shape.join(',')}], but a frame is [height,width,3]`)
    const geometry = geometryOf(inputs.get('geometry'))
    const detections = wanted(inputs, 'detections')
    if (detections.shape.length !== 2 || detections.shape[1] !== rowLength)
      throw refusal(`input "detections" is [${detections.shape.join(',')}], not [-1,${rowLength}]`)
    const boxes = floatsOf(detections)
    const count = boxes.length / rowLength
    const { form } = this.plan
    if (count * cropBytes(form) > mostBytes)
      throw refusal(
        `${count} crops of ${form.size.widthPx}x${form.size.heightPx} are more than ${mostBytes} bytes`,
      )
    const { buffer } = await transferable(frame)
    const { crops } = await this.worker.run({ frame: buffer, widthPx, heightPx, geometry, boxes }, [buffer])
    const data = new Uint8Array(crops)
    return [{ name: 'crops', datatype: pixelType(form), shape: inputShape(form, count), data, movable: true }]
  }
}

function wanted(inputs: ReadonlyMap<string, Tensor>, name: string): Tensor {
  const tensor = inputs.get(name)
  if (tensor !== undefined) return tensor
  throw refusal(`input "${name}" is missing`)
}

function geometryOf(tensor: Tensor | undefined): Float32Array | undefined {
  if (tensor === undefined) return undefined
  const numbers = floatsOf(tensor)
  const isOne = numbers.length === geometryLength && numbers.every(Number.isFinite) && numbers[0]! > 0
  if (isOne) return numbers
  throw refusal(
    `input "geometry" is [${tensor.shape.join(',')}] ${[...numbers.subarray(0, geometryLength)].join(',')}, not [1,${geometryLength}]: scale, x and y padding, width and height`,
  )
}

function floatsOf({ data }: Tensor): Float32Array {
  return new Float32Array(new Uint8Array(data).buffer)
}

function refusal(problem: string): ServingError {
  return new ServingError('INVALID_ARG', `crop: ${problem}`)
}
