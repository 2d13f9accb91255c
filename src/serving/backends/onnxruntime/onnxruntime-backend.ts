import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { ExecutionProvider, InferenceConfig } from '../../../config/inference.js'
import { autoComplete } from '../../../inference/auto-complete.js'
import {
  ModelConfigError,
  ModelInvalidError,
  ModelNotFoundError,
  WorkerExitedError,
} from '../../../inference/errors.js'
import { graphOptimization } from '../../../inference/graph-optimization.js'
import { labelsFromMetadata } from '../../../inference/labels.js'
import { matchTensors } from '../../../inference/match-tensors.js'
import type { ModelConfig } from '../../../inference/model-config.js'
import { type OnnxInfo, readOnnxFile } from '../../../inference/onnx-file.js'
import { logNotes, type ProviderNote } from '../../../inference/provider-notes.js'
import { type DeviceKind, deviceOf } from '../../../inference/providers.js'
import { sessionSettings } from '../../../inference/session-settings.js'
import { describeTensor } from '../../../inference/tensor-type.js'
import { isThere } from '../../../lifecycle/system-limit.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../backend.js'
import { datatypeOfConfig } from '../../datatype.js'
import { zeros } from '../../scheduling/batching-probe.js'
import { sequenceControls } from '../../scheduling/sequence-controls.js'
import { implicitState } from '../../scheduling/sequence-state.js'
import type { Tensor, TensorSpec } from '../../tensor.js'
import { isSupported } from './element-arrays.js'
import { completeGroups, placements } from './instance-groups.js'
import { OnnxInstance } from './onnx-instance.js'
import type { OnnxLoad } from './onnx-protocol.js'

/** What of the pipeline's inference settings holds for API models. */
export type OnnxSettings = Pick<InferenceConfig, 'providers' | 'deviceId' | 'intraOpThreads'> &
  Readonly<{
    /** Told at each load of a model why providers do not run it. */
    onNotes?: (model: string, notes: readonly ProviderNote[]) => void
    /** Path of the entry of the threads; tests have one of their own. */
    workerEntry?: string
  }>

/** ONNX files, each instance a session in a thread of its own. */
export function onnxRuntimeBackend(settings: OnnxSettings): Backend {
  return {
    name: 'onnxruntime',
    open: (context) => Promise.resolve().then(() => openModel(context, settings)),
  }
}

function openModel(context: BackendContext, settings: OnnxSettings): OpenedModel {
  const { name, log } = context
  const path = modelPath(context)
  const onnx = readOnnxFile(path)
  const written = context.config
  const config = complete(written, name, onnx, settings.providers)
  matchTensors(config, onnx, path)
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
  const ofSequences = [...idle, ...implicitState(config, dirname(context.versionDir)).initial()]
  let announced = false
  const devices = new Set<DeviceKind>()
  return {
    config,
    platform: 'onnxruntime_onnx',
    ...tensorSpecs(config),
    labels: labelsFromMetadata(onnx.metadata) ?? [],
    batchingIsAutomatic: written.dynamic_batching === undefined && config.dynamic_batching !== undefined,
    async start(index): Promise<BackendInstance> {
      const place = places[index % Math.max(1, places.length)]
      if (place === undefined)
        throw new ModelConfigError(
          `model "${name}" has no instance that takes part`,
          'Leave out "passive" of one instance_group at least.',
        )
      const load: OnnxLoad = { session: { ...session, ...place }, inputTypes, fullBatch }
      const { instance, ready } = await OnnxInstance.start(
        `${name}#${index}`,
        fullBatch !== undefined,
        load,
        settings.workerEntry,
      )
      devices.add(deviceOf(ready.provider))
      if (!announced) {
        announced = true
        logNotes(log, name, ready)
        settings.onNotes?.(name, ready.notes)
        log.info({ model: name, provider: ready.provider, instances: places.length }, 'model instances start')
      }
      await runOnce(instance, config, ofSequences)
      return instance
    },
    onGpu: () => devices.has('gpu') && !devices.has('cpu'),
    close: () => Promise.resolve(),
  }
}

/** The model file; a folder of that name holds a model with its weights beside it. */
function modelPath({ name, config, versionDir }: BackendContext): string {
  const given = config.default_model_filename ?? ''
  const file = given === '' ? 'model.onnx' : given
  if (basename(file) !== file)
    throw new ModelConfigError(
      `default_model_filename "${file}" of model "${name}" is not a plain file name`,
      'Name a file in the version folder.',
    )
  const path = join(versionDir, file)
  if (!isThere(path))
    throw new ModelNotFoundError(
      `model "${name}" has no file ${path}`,
      'Put the model there, or name the file in default_model_filename.',
    )
  return statSync(path).isDirectory() ? join(path, 'model.onnx') : path
}

/** Batching is turned on for every model that takes batches and names no scheduler. */
function complete(
  written: ModelConfig,
  name: string,
  onnx: OnnxInfo,
  providers: readonly ExecutionProvider[],
): ModelConfig {
  const config = autoComplete(written, name, onnx)
  const batches =
    (config.max_batch_size ?? 0) > 1 &&
    config.dynamic_batching === undefined &&
    config.sequence_batching === undefined
  return {
    ...config,
    platform: 'onnxruntime_onnx',
    instance_group: completeGroups(config.instance_group, name, providers),
    ...(batches ? { dynamic_batching: { preferred_batch_size: [], priority_queue_policy: {} } } : {}),
  }
}

/**
 * The first run allocates and is slow. Models whose sizes are open, or that refuse zeros, do it with their first request.
 *
 * @param ofSequences - inputs that the sequence scheduler adds.
 */
async function runOnce(
  instance: OnnxInstance,
  config: ModelConfig,
  ofSequences: readonly Tensor[],
): Promise<void> {
  if (config.input.some((input) => input.dims.includes(-1))) return
  try {
    const one = zeros(config)
    const inputs = new Map([...one.inputs, ...ofSequences.map((tensor) => [tensor.name, tensor] as const)])
    await instance.execute([{ ...one, inputs }])
  } catch (error) {
    if (error instanceof WorkerExitedError) throw error
  }
}

function checkTypes(onnx: OnnxInfo, path: string): void {
  const foreign = [...onnx.inputs, ...onnx.outputs].find((tensor) => !isSupported(tensor.type))
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
