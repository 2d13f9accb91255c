import { dirname } from 'node:path'
import type { InferenceConfig } from '../../config/inference.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { InferenceFailedError, TensorShapeError, WorkerExitedError } from '../../runtime/errors.js'
import { graphOptimization, type ModelConfig, stateOutputs } from '../../repository/model-config.js'
import { labelsFromMetadata } from '../../repository/labels.js'
import type { OnnxInfo } from '../../repository/onnx-file.js'
import { openOnnxVersion } from '../../repository/onnx-model.js'
import { logNotes, type ProviderNote } from './provider-notes.js'
import { type DeviceKind, deviceOf, type missingProviderReason } from './providers.js'
import { sessionSettings } from './session-settings.js'
import { describeTensor, type Tensor, type TensorSpec } from '../../tensors/tensor.js'
import { datatypeOfConfig, datatypeOfOnnx, isArrayDatatype } from '../../tensors/element-type.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../runtime/backend.js'
import { mostItems, zeros } from '../../runtime/batching-probe.js'
import { sequenceControls } from '../../runtime/sequence-controls.js'
import { implicitState } from '../../runtime/sequence-state.js'
import { completeGroups, placements } from './instance-groups.js'
import { OnnxInstance } from './onnx-instance.js'
import type { OnnxLoad } from './onnx-protocol.js'

/** What of the pipeline's inference settings holds for API models. */
export type OnnxSettings = Pick<InferenceConfig, 'providers' | 'deviceId' | 'intraOpThreads'> &
  Readonly<{
    /** Told at each load of a model why providers do not run it. */
    onNotes?: (model: string, notes: readonly ProviderNote[]) => void
    /** Path of the entry of the threads; tests have one of their own, with a GPU. */
    workerEntry?: string
    /** Why a provider cannot even be tried, there. */
    missing?: typeof missingProviderReason
  }>

/** ONNX files, each instance a session in a thread of its own. */
export function onnxRuntimeBackend(settings: OnnxSettings): Backend {
  return {
    name: 'onnxruntime',
    open: (context) => openModel(context, settings),
  }
}

async function openModel(context: BackendContext, settings: OnnxSettings): Promise<OpenedModel> {
  const { name, log } = context
  const written = context.config
  const { path, onnx, config: completed } = openOnnxVersion(context.versionDir, { ...written, name })
  const config = withScheduling(completed, name, settings)
  checkTypes(onnx, path)
  const places = placements(config.instance_group, settings.providers, settings.deviceId)
  const session = {
    path,
    graphOptimization: graphOptimization(config),
    ...sessionSettings(config, settings.intraOpThreads),
  }
  const inputTypes = Object.fromEntries(onnx.inputs.map((input) => [input.name, input.type]))
  const idle = sequenceControls(config)({ start: false, end: false, ready: false, id: '' })
  const rows = config.max_batch_size ?? 0
  const fullBatch =
    rows > 0
      ? { rows, idle: Object.fromEntries(idle.map((tensor) => [tensor.name, tensor.data])) }
      : undefined
  const state = await implicitState(config, dirname(context.versionDir))
  const ofSequences = [...idle, ...state.initial()]
  let announced = false
  const devices = new Set<DeviceKind>()
  return {
    config,
    platform: 'onnxruntime_onnx',
    ...tensorSpecs(config),
    labels: labelsFromMetadata(onnx.metadata) ?? [],
    batchingIsAutomatic: written.dynamic_batching === undefined && config.dynamic_batching !== undefined,
    isReplaceable: true,
    async start(index, onBegan): Promise<BackendInstance> {
      const place = places[index % places.length]!
      const load: OnnxLoad = { session: { ...session, ...place }, inputTypes, fullBatch }
      const { instance, ready } = await OnnxInstance.start(
        `${name}#${index}`,
        fullBatch !== undefined,
        load,
        settings.workerEntry,
        onBegan,
      )
      devices.add(deviceOf(ready.provider))
      if (!announced) {
        announced = true
        logNotes(log, name, ready)
        settings.onNotes?.(name, ready.notes)
        log.info({ model: name, provider: ready.provider, instances: places.length }, 'model instances start')
      }
      try {
        await runOnce(instance, config, ofSequences)
      } catch (error) {
        await instance.close()
        throw error
      }
      return instance
    },
    onGpu: () => devices.has('gpu') && !devices.has('cpu'),
    close: () => Promise.resolve(),
  }
}

/** Batching is turned on for every model that takes batches and names no scheduler. */
function withScheduling(
  config: ModelConfig,
  name: string,
  { providers, missing }: OnnxSettings,
): ModelConfig {
  const batches =
    (config.max_batch_size ?? 0) > 1 &&
    config.dynamic_batching === undefined &&
    config.sequence_batching === undefined
  return {
    ...config,
    platform: 'onnxruntime_onnx',
    instance_group: completeGroups(config.instance_group, name, providers, missing),
    ...(batches ? { dynamic_batching: { preferred_batch_size: [], priority_queue_policy: {} } } : {}),
  }
}

/**
 * The first run allocates and is slow. Models whose sizes are open, or that refuse zeros, do it with their first request. Two items tell
 * whether outputs have the batch as their first dimension.
 *
 * @param ofSequences - inputs that the sequence scheduler adds.
 * @throws ModelInvalidError for an output without a row for each item
 */
async function runOnce(
  instance: OnnxInstance,
  config: ModelConfig,
  ofSequences: readonly Tensor[],
): Promise<void> {
  const items = Math.min(2, Math.max(1, config.max_batch_size ?? 0), mostItems(config))
  if (items < 1 || config.input.some((input) => input.dims.includes(-1))) return
  try {
    const one = zeros(config)
    const inputs = new Map([...one.inputs, ...ofSequences.map((tensor) => [tensor.name, tensor] as const)])
    const outputs = [...new Set([...one.outputs, ...stateOutputs(config)])]
    const execution = { ...one, inputs, outputs }
    await instance.execute(Array.from({ length: items }, () => execution))
  } catch (error) {
    if (error instanceof WorkerExitedError) throw error
    if (isOfShape(error))
      throw new ModelInvalidError(
        `model "${config.name ?? ''}": ${error.message}`,
        'Write max_batch_size: 0 and the whole shapes in dims, or export the model with the batch first in every output.',
        error,
      )
  }
}

/** Whether an output has not a row for each item, as the thread or its answer tells. */
function isOfShape(error: unknown): error is Error {
  const cause = error instanceof Error ? error.cause : undefined
  return (
    cause instanceof TensorShapeError ||
    (cause instanceof InferenceFailedError && cause.record.code === 'GANTRY_TENSOR_SHAPE')
  )
}

function checkTypes(onnx: OnnxInfo, path: string): void {
  const foreign = [...onnx.inputs, ...onnx.outputs].find(
    ({ type }) => type !== 'string' && !isArrayDatatype(datatypeOfOnnx(type)),
  )
  if (foreign === undefined) return
  throw new ModelInvalidError(
    `${path}: tensor "${foreign.name}" ${describeTensor(foreign)} has a type that ONNX Runtime's binding for Node does not take`,
    'Put a Cast behind the input or before the output, so that the model takes and gives float32 or float16.',
  )
}

function tensorSpecs(config: ModelConfig): Pick<OpenedModel, 'inputs' | 'outputs'> {
  const batch = (config.max_batch_size ?? 0) > 0 ? [-1] : []
  const spec = ({ name, data_type, dims }: ModelConfig['output'][number]): TensorSpec => ({
    name,
    datatype: datatypeOfConfig(data_type) ?? 'BYTES',
    shape: [...batch, ...dims],
  })
  return {
    inputs: config.input.map((input) => ({
      ...spec(input),
      ...(input.optional === true ? { optional: true } : {}),
    })),
    outputs: config.output.map(spec),
  }
}
