import { inputShape, isFrameItself } from '../input-tensor.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../runtime/backend.js'
import { configTensors } from '../../backends/config-tensors.js'
import type { TensorSpec } from '../../tensors/tensor.js'
import { WorkerInstance } from '../../backends/worker-instance.js'
import { LetterboxInstance } from './letterbox-instance.js'
import { letterboxParameters, type LetterboxPlan, pixelType } from './letterbox-parameters.js'
import type { LetterboxAnswer, LetterboxJob, LetterboxLoad } from './letterbox-protocol.js'

/**
 * Fits pictures into the input of a detector.
 *
 * - `image` uint8 `[H, W, 3]`, RGB
 * - `pixels` `[1, ...]` as the plan says; `geometry` float32 `[1, 5]`: scale, x and y padding, width and height of the picture;
 *   `size` int64 `[1, 2]`: width and height of `pixels`; `frame` uint8 `[H, W, 3]`, RGB: what `pixels` shows
 *
 * With `max_batch_size > 0` the input has a batch dimension too, and all pictures of a request the same size.
 */
export class LetterboxBackend implements Backend {
  readonly name = 'letterbox'

  /** @param bound - what the detector behind it takes; without it the parameters say so. */
  constructor(readonly bound?: LetterboxPlan) {}

  open(context: BackendContext): Promise<OpenedModel> {
    return Promise.resolve().then(() => {
      const plan = this.bound ?? letterboxParameters(context.name, context.config)
      if (plan !== undefined) return new OpenedLetterbox(context, plan)
      throw new ModelConfigError(
        `model "${context.name}" is a letterbox without a size`,
        'Set its parameter "gantry.input_size", or use it as a step of an ensemble, which takes the size from the detector.',
      )
    })
  }
}

class OpenedLetterbox implements OpenedModel {
  readonly platform = 'letterbox'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]

  constructor(
    readonly context: BackendContext,
    readonly plan: LetterboxPlan,
  ) {
    const batched = (context.config.max_batch_size ?? 0) > 0
    const frames = batched ? -1 : 1
    this.inputs = [{ name: 'image', datatype: 'UINT8', shape: [...(batched ? [-1] : []), -1, -1, 3] }]
    this.outputs = [
      {
        name: 'pixels',
        datatype: pixelType(plan),
        shape: inputShape(plan, frames),
      },
      { name: 'geometry', datatype: 'FP32', shape: [frames, 5] },
      { name: 'size', datatype: 'INT64', shape: [frames, 2] },
      {
        name: 'frame',
        datatype: 'UINT8',
        shape: [...(batched ? [-1] : []), plan.size.heightPx, plan.size.widthPx, 3],
      },
    ]
    this.config = configTensors(context.config, 'letterbox', this)
  }

  async start(index: number): Promise<BackendInstance> {
    const { plan, context } = this
    const worker = needsWorker(plan)
      ? await WorkerInstance.start<LetterboxLoad, LetterboxJob, LetterboxAnswer>(
          `${context.name}#${index}`,
          entryPath(import.meta.url, './letterbox-worker.js'),
          { plan },
        )
      : undefined
    return new LetterboxInstance(plan, (context.config.max_batch_size ?? 0) > 0, worker)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** sharp writes RGB bytes; anything else is rearranged in a thread. */
function needsWorker(plan: LetterboxPlan): boolean {
  return !isFrameItself({ ...plan, name: '' })
}
