import { dirname } from 'node:path'
import type { DetectionLimits } from '../frame-reader.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../runtime/backend.js'
import { outputLabels } from '../../repository/output-labels.js'
import type { TensorSpec } from '../../tensors/tensor.js'
import { configTensors } from '../../backends/config-tensors.js'
import { WorkerInstance } from '../../backends/worker-instance.js'
import { DetectionHeadInstance } from './detection-head-instance.js'
import { type StrangeScores, strangeScoresText } from '../strange-scores.js'
import { detectionLimits, type HeadBinding, headParameters } from './head-parameters.js'
import type { HeadAnswer, HeadJob, HeadLoad } from './head-protocol.js'

/**
 * Turns the outputs of a detector into boxes, in worker threads.
 *
 * - the detector's outputs, and `geometry` float32 `[1, 5]` of the letterbox
 * - `detections` float32 `[-1, 6]`: x1, y1, x2, y2 in pixels of the picture, score, class; best first
 *
 * With `max_batch_size > 0` there are several pictures, and `detections` is `[N, -1, 6]` where pictures with fewer boxes than the
 * fullest one end in rows of score 0 and class -1.
 */
export class DetectionHeadBackend implements Backend {
  readonly name = 'detection_head'

  /** @param bound - the detector before it; without it inputs and parameters say so. */
  constructor(readonly bound?: HeadBinding) {}

  open(context: BackendContext): Promise<OpenedModel> {
    return Promise.resolve().then(() => {
      const binding = this.bound ?? headParameters(context.name, context.config, labelsOf(context))
      if (binding === undefined)
        throw new ModelConfigError(
          `model "${context.name}" is a detection head without a detector`,
          'List the outputs of the detector as its inputs and set "gantry.input_size", or use it as a step of an ensemble, which takes both from the detector.',
        )
      return new OpenedHead(context, binding, detectionLimits(context.name, context.config))
    })
  }
}

class OpenedHead implements OpenedModel {
  readonly platform = 'detection_head'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
  readonly #batched: boolean
  #told = false

  constructor(
    readonly context: BackendContext,
    readonly binding: HeadBinding,
    readonly limits: DetectionLimits,
  ) {
    this.#batched = (context.config.max_batch_size ?? 0) > 0
    this.inputs = [
      ...binding.inputs,
      { name: 'geometry', datatype: 'FP32', shape: [this.#batched ? -1 : 1, 5] },
    ]
    this.outputs = [{ name: 'detections', datatype: 'FP32', shape: this.#batched ? [-1, -1, 6] : [-1, 6] }]
    this.config = configTensors(context.config, 'detection_head', this)
  }

  async start(index: number): Promise<BackendInstance> {
    const { binding, context, limits } = this
    const { plan, input, inputs } = binding
    const worker = await WorkerInstance.start<HeadLoad, HeadJob, HeadAnswer>(
      `${context.name}#${index}`,
      entryPath(import.meta.url, './head-worker.js'),
      { plan, input, limits },
    )
    return new DetectionHeadInstance(
      inputs.map((spec) => spec.name),
      this.#batched,
      worker,
      (strange) => this.#tell(strange),
    )
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #tell(strange: StrangeScores): void {
    if (this.#told) return
    this.#told = true
    const { log, name } = this.context
    log.error({ model: name, ...strange }, `the detector before "${name}" ${strangeScoresText(strange)}`)
  }
}

/** Those that name the classes of its output. */
function labelsOf({ config, versionDir }: BackendContext): readonly string[] {
  const output = config.output.length > 0 ? config.output : [{ name: 'detections' }]
  return outputLabels({ output }, dirname(versionDir)).get(output[0]?.name ?? '') ?? []
}
