import { dirname } from 'node:path'
import type { InferenceConfig } from '../../config/inference.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { graphOptimization, type ModelConfig } from '../../repository/model-config.js'
import { labelsOfMetadata } from '../../repository/labels.js'
import type { OnnxInfo } from '../../repository/onnx-file.js'
import { scalarTensors } from '../../repository/match-tensors.js'
import { openOnnxVersion } from '../../repository/onnx-model.js'
import { firstRuns, sizesAtOnce } from './first-runs.js'
import { failureIn, warnOfSizes } from './provider-notes.js'
import { acceleratedProviders, nativeOptions } from './provider-options.js'
import { ProviderUses } from './provider-uses.js'
import { type DeviceKind, deviceOf, missingProviderReason, oneShape } from './providers.js'
import { sessionSettings } from './session-settings.js'
import { describeTensor, type TensorSpec } from '../../tensors/tensor.js'
import { datatypeOfConfig, datatypeOfOnnx, isArrayDatatype } from '../../tensors/element-type.js'
import type { Backend, BackendContext, BackendInstance, OpenedModel } from '../../runtime/backend.js'
import { type SizeCost, sizesUpTo } from '../../runtime/batch-sizes.js'
import { sequenceControls } from '../../runtime/sequence-controls.js'
import { implicitState } from '../../runtime/sequence-state.js'
import type { ModelStatistics } from '../../runtime/statistics.js'
import { completeGroups, placements } from './instance-groups.js'
import { OnnxInstance } from './onnx-instance.js'
import type { OnnxLoad } from './onnx-protocol.js'

/** A GPU that failed, and the model whose run did. */
export type DeviceFailure = Readonly<{ deviceId: number; model: string; reason: string }>

/** What of the pipeline's inference settings holds for API models. */
export type OnnxSettings = Pick<InferenceConfig, 'providers' | 'intraOpThreads'> &
  Partial<Pick<InferenceConfig, 'cuda' | 'tensorrt'>> &
  Readonly<{
    /** GPUs by number, one at least, of groups that name none. Read at each load. */
    devices: readonly number[]
    /** Nothing runs any more on a GPU in this process. */
    onDeviceFailed?: (failure: DeviceFailure) => void
    /** Knows where models run. Absent: the log alone is told. */
    uses?: ProviderUses
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
  const { name, version, log } = context
  const written = context.config
  const { path, onnx, config: completed } = openOnnxVersion(context.versionDir, { ...written, name })
  const config = withScheduling(completed, name, settings)
  checkTypes(onnx, path)
  const { cuda, tensorrt } = settings
  const places = placements(config.instance_group, acceleratedProviders(settings.providers, config))
  const session = {
    path,
    graphOptimization: graphOptimization(config),
    ...sessionSettings(config, settings.intraOpThreads),
    ...nativeOptions({ cuda, tensorrt }, config),
  }
  const scalars = scalarTensors(config, onnx)
  const inputTypes = Object.fromEntries(onnx.inputs.map((input) => [input.name, input.type]))
  const idle = sequenceControls(config)({ start: false, end: false, ready: false, id: '' })
  const most = config.max_batch_size ?? 0
  const batchRows =
    most > 0
      ? {
          sizes: sizesUpTo(most, preferredSizes(config)),
          idle: Object.fromEntries(idle.map((tensor) => [tensor.name, tensor.data])),
        }
      : undefined
  const state = await implicitState(config, dirname(context.versionDir))
  const ofSequences = [...idle, ...state.initial()]
  const uses = (settings.uses ?? new ProviderUses(log)).open(name, version)
  const { missing = missingProviderReason } = settings
  const named = labelsOfMetadata(onnx.metadata)
  let announced = false
  const devices = new Set<DeviceKind>()
  /** GPU of each instance that runs on one by its number. */
  const onCards = new Map<number, number>()
  /** By size, of the instance that is measured. */
  const costs = new Map<number, SizeCost>()
  let measured: number | undefined
  return {
    config,
    platform: 'onnxruntime_onnx',
    ...tensorSpecs(config),
    labels: named.labels ?? [],
    ...(named.problem !== undefined && { labelsProblem: named.problem }),
    scalarInputs: scalars.inputs,
    batchingIsAutomatic: written.dynamic_batching === undefined && config.dynamic_batching !== undefined,
    isReplaceable: true,
    async start(index, onBegan): Promise<BackendInstance> {
      const place = places[index % places.length]!
      // Its sessions are as those of the others.
      const measuresMemory = place.providers.some(oneShape) && (measured ?? index) === index
      const load: OnnxLoad = {
        session: { ...session, ...place },
        inputTypes,
        scalars,
        batchRows,
        measuresMemory,
      }
      const { instance, ready } = await OnnxInstance.start(
        `${name}#${index}`,
        batchRows !== undefined,
        load,
        settings.workerEntry,
        onBegan,
        (reason) => settings.onDeviceFailed?.({ deviceId: place.deviceId, model: name, reason }),
      ).catch((error: unknown) => {
        const reason = failureIn(error)
        const installed = place.providers.filter((provider) => missing(provider) === undefined)
        if (reason !== undefined) uses.failed(index, installed, place.deviceId, reason)
        throw error
      })
      if (oneShape(ready.provider)) onCards.set(index, place.deviceId)
      devices.add(deviceOf(ready.provider))
      uses.started(index, ready, place.deviceId)
      if (!announced) {
        announced = true
        if (ready.sizesLeftOut !== undefined) warnOfSizes(log, name, ready.sizesLeftOut)
        log.info({ model: name, provider: ready.provider, instances: places.length }, 'model instances start')
      }
      try {
        const atOnce = sizesAtOnce(ready.sizes ?? [], config, onnx)
        const sizes = await firstRuns(instance, config, ofSequences, ready.sizes, atOnce)
        if (measuresMemory && sizes !== undefined) measured = index
        const keeps = measured === index
        if (keeps) for (const cost of sizes?.warm ?? []) costs.set(cost.size, cost)
        instance.sizes = sizes && {
          ...sizes,
          run: async (size) => {
            const cost = await sizes.run(size)
            if (keeps) costs.set(size, cost)
            return cost
          },
        }
      } catch (error) {
        await instance.close()
        throw error
      }
      return instance
    },
    gpuMemory: () => memoryOf([...costs.values()], [...onCards.values()]),
    onGpu: () => devices.has('gpu') && !devices.has('cpu'),
    close: () => {
      uses.closed()
      return Promise.resolve()
    },
  }
}

function preferredSizes({ dynamic_batching, sequence_batching }: ModelConfig): readonly number[] {
  return (dynamic_batching ?? sequence_batching?.oldest)?.preferred_batch_size ?? []
}

/** Batching is turned on for every model that takes batches and names no scheduler. */
function withScheduling(
  config: ModelConfig,
  name: string,
  { providers, devices, missing }: OnnxSettings,
): ModelConfig {
  const batches =
    (config.max_batch_size ?? 0) > 1 &&
    config.dynamic_batching === undefined &&
    config.sequence_batching === undefined
  return {
    ...config,
    platform: 'onnxruntime_onnx',
    instance_group: completeGroups(config.instance_group, name, { providers, devices, missing }),
    ...(batches ? { dynamic_batching: { preferred_batch_size: [], priority_queue_policy: {} } } : {}),
  }
}

/** What instances were measured to take on their cards: as much as the first. */
function memoryOf(costs: readonly SizeCost[], cards: readonly number[]): ModelStatistics['memory'] {
  const known = costs.flatMap(({ memoryBytes }) => memoryBytes ?? [])
  const each = known.reduce((sum, bytes) => sum + bytes, 0)
  if (each === 0) return []
  return [...new Set(cards)]
    .sort((a, b) => a - b)
    .map((id) => ({
      type: 'GPU',
      id,
      bytes: each * cards.filter((card) => card === id).length,
    }))
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
