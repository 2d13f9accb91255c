import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../runtime/backend.js'
import { configTensors } from '../../backends/config-tensors.js'
import { WorkerInstance } from '../../backends/worker-instance.js'
import type { TensorSpec } from '../../tensors/tensor.js'
import { inputShape } from '../input-tensor.js'
import { pixelType } from '../letterbox/letterbox-parameters.js'
import { CropInstance } from './crop-instance.js'
import { type CropForm, cropMargin, type CropPlan, cropSize, plainForm } from './crop-parameters.js'
import type { CropAnswer, CropJob, CropLoad } from './crop-protocol.js'

/**
 * Cuts the boxes of a picture out of the frame that the detector saw, each stretched to one size.
 *
 * - `frame` uint8 `[H, W, 3]`, RGB; `geometry` float32 `[1, 5]` of the letterbox that made it, left out where the frame is the
 *   picture itself; `detections` float32 `[-1, 6]`: x1, y1, x2, y2 in pixels of the picture, and two numbers that do not matter
 * - `crops`, a row for each box, in the form that the model takes which reads them; without one uint8 `[-1, h, w, 3]`, RGB
 *
 * One picture at a time: `max_batch_size` is 0.
 */
export class CropBackend implements Backend {
  readonly name = 'crop'

  /** @param bound - what the model that reads the crops takes; without it the parameters say their size. */
  constructor(readonly bound?: CropForm) {}

  open(context: BackendContext): Promise<OpenedModel> {
    return Promise.resolve().then(() => {
      const { name, config } = context
      if ((config.max_batch_size ?? 0) > 0)
        throw new ModelConfigError(
          `model "${name}": crop takes one picture at a time, but max_batch_size is ${config.max_batch_size}`,
          'Set max_batch_size to 0, of the ensemble where crop is a step of one; its boxes make a batch.',
        )
      const size = cropSize(name, config)
      const form = this.bound ?? (size === undefined ? undefined : plainForm(size))
      if (form !== undefined) return new OpenedCrop(context, { form, marginShare: cropMargin(name, config) })
      throw new ModelConfigError(
        `model "${name}" is a crop without a size`,
        'Set its parameter "gantry.crop_size", or use it as a step of an ensemble, which takes the size from the model that reads the crops.',
      )
    })
  }
}

class OpenedCrop implements OpenedModel {
  readonly platform = 'crop'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[] = [
    { name: 'frame', datatype: 'UINT8', shape: [-1, -1, 3] },
    { name: 'geometry', datatype: 'FP32', shape: [1, 5], optional: true },
    { name: 'detections', datatype: 'FP32', shape: [-1, 6] },
  ]
  readonly outputs: readonly TensorSpec[]

  constructor(
    readonly context: BackendContext,
    readonly plan: CropPlan,
  ) {
    const { form } = plan
    this.outputs = [{ name: 'crops', datatype: pixelType(form), shape: inputShape(form, -1) }]
    this.config = configTensors(context.config, 'crop', this)
  }

  async start(index: number): Promise<BackendInstance> {
    const worker = await WorkerInstance.start<CropLoad, CropJob, CropAnswer>(
      `${this.context.name}#${index}`,
      entryPath(import.meta.url, './crop-worker.js'),
      { plan: this.plan },
    )
    return new CropInstance(this.plan, worker)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
