import type { ModelConfig } from '../../repository/model-config.js'
import { nowMs } from '../../lifecycle/clock.js'
import type {
  Backend,
  BackendContext,
  BackendInstance,
  BatchResult,
  Execution,
  OpenedModel,
} from '../../runtime/backend.js'
import { ModelConfigError } from '../../repository/errors.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import { configTensors, specsOf } from '../config-tensors.js'
import { eachAlone } from '../each-alone.js'
import { decodePicture } from './decode-picture.js'

/**
 * Decodes one JPEG or PNG.
 *
 * - `image` BYTES `[1]`; or uint8 `[-1]`, the bytes of the file, where the configuration says `TYPE_UINT8`
 * - `pixels` uint8 `[H, W, 3]`, RGB
 */
export class ImageDecodeBackend implements Backend {
  readonly name = 'image_decode'

  open(context: BackendContext): Promise<OpenedModel> {
    return Promise.resolve().then(() => this.#open(context))
  }

  #open(context: BackendContext): OpenedModel {
    if ((context.config.max_batch_size ?? 0) > 0)
      throw new ModelConfigError(
        `model "${context.name}": image_decode takes one picture at a time, because pictures have different sizes`,
        'Set max_batch_size to 0, also in an ensemble that uses it.',
      )
    return new OpenedImageDecode(context)
  }
}

class OpenedImageDecode implements OpenedModel {
  readonly platform = 'image_decode'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[] = [{ name: 'pixels', datatype: 'UINT8', shape: [-1, -1, 3] }]

  constructor({ config }: BackendContext) {
    const asFile = specsOf(config, config.input).some(({ datatype }) => datatype === 'UINT8')
    this.inputs = [
      asFile
        ? { name: 'image', datatype: 'UINT8', shape: [-1] }
        : { name: 'image', datatype: 'BYTES', shape: [1] },
    ]
    this.config = configTensors(config, 'image_decode', this)
  }

  start(): Promise<BackendInstance> {
    return Promise.resolve(new ImageDecodeInstance())
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

class ImageDecodeInstance implements BackendInstance {
  execute(batch: readonly Execution[]): Promise<BatchResult> {
    return eachAlone(batch, nowMs, decoded)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

async function decoded({ inputs }: Execution): Promise<readonly Tensor[]> {
  const image = inputs.get('image')
  if (image === undefined) throw new ServingError('INVALID_ARG', 'image_decode: input "image" is missing')
  const file = image.datatype === 'BYTES' ? image.data.subarray(4) : image.data
  const { rgbHwc, widthPx, heightPx } = await decodePicture(file)
  return [{ name: 'pixels', datatype: 'UINT8', shape: [heightPx, widthPx, 3], data: rgbHwc }]
}
