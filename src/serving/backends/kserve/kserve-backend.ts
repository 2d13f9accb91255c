import { ModelInvalidError } from '../../../inference/errors.js'
import type { ModelConfig } from '../../../inference/model-config.js'
import { nowMs } from '../../../lifecycle/clock.js'
import type {
  Backend,
  BackendContext,
  BackendInstance,
  BatchResult,
  Execution,
  OpenedModel,
} from '../../backend.js'
import type { TensorSpec } from '../../tensor.js'
import { configTensors, specsOf } from '../config-tensors.js'
import { eachAlone } from '../each-alone.js'
import { KserveCluster } from './kserve-cluster.js'
import { inferMessage, metadataTensors, outputTensors } from './kserve-messages.js'
import { kserveSettings } from './kserve-settings.js'

/** Calls to a remote server wait without using a core, so there may be many. */
const defaultInstances = 16

/** Runs a model on another server that speaks KServe v2 over gRPC, Triton among them. */
export class KserveBackend implements Backend {
  readonly name = 'kserve'

  async open(context: BackendContext): Promise<OpenedModel> {
    const cluster = new KserveCluster(kserveSettings(context), context.log)
    try {
      return await opened(context, cluster)
    } catch (error) {
      cluster.close()
      throw error
    }
  }
}

/** A configuration that lists all tensors needs no answer from the server yet. */
async function opened(context: BackendContext, cluster: KserveCluster): Promise<OpenedModel> {
  const { config } = context
  const listed = { inputs: specsOf(config, config.input), outputs: specsOf(config, config.output) }
  if (listed.inputs.length > 0 && listed.outputs.length > 0) return new RemoteModel(config, listed, cluster)
  return described(context, cluster)
}

async function described({ name, config }: BackendContext, cluster: KserveCluster): Promise<OpenedModel> {
  const { model, version } = cluster.settings
  const options = { retry: true, signal: undefined }
  try {
    const metadata = await cluster.call('ModelMetadata', { name: model, version }, options)
    const { config: remote } = await cluster.call('ModelConfig', { name: model, version }, options)
    const most = (remote as { max_batch_size?: number } | null)?.max_batch_size ?? 0
    const tensors = {
      inputs: metadataTensors(metadata, 'inputs'),
      outputs: metadataTensors(metadata, 'outputs'),
    }
    return new RemoteModel({ ...config, max_batch_size: config.max_batch_size ?? most }, tensors, cluster)
  } catch (error) {
    throw new ModelInvalidError(
      `model "${name}": ${error instanceof Error ? error.message : String(error)}`,
      'Start the remote server first, or list input and output in config.pbtxt.',
      error,
    )
  }
}

class RemoteModel implements OpenedModel {
  readonly platform = 'kserve'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]

  constructor(
    config: ModelConfig,
    tensors: Readonly<{ inputs: readonly TensorSpec[]; outputs: readonly TensorSpec[] }>,
    readonly cluster: KserveCluster,
  ) {
    this.inputs = tensors.inputs
    this.outputs = tensors.outputs
    const groups =
      config.instance_group.length > 0
        ? config.instance_group
        : [
            {
              kind: 'KIND_CPU' as const,
              count: defaultInstances,
              gpus: [],
              profile: [],
              secondary_devices: [],
            },
          ]
    this.config = { ...configTensors(config, 'kserve', tensors), instance_group: groups }
  }

  start(): Promise<BackendInstance> {
    return Promise.resolve(new RemoteInstance(this.cluster))
  }

  close(): Promise<void> {
    this.cluster.close()
    return Promise.resolve()
  }
}

class RemoteInstance implements BackendInstance {
  constructor(readonly cluster: KserveCluster) {}

  execute(batch: readonly Execution[]): Promise<BatchResult> {
    return eachAlone(batch, nowMs, async (execution) => {
      const { sequence, signal } = execution
      const message = inferMessage(this.cluster.settings, execution)
      // A sequence has a state on the server: a request that may have reached it is not sent again.
      return outputTensors(
        await this.cluster.call('ModelInfer', message, { retry: sequence === undefined, signal }),
      )
    })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
