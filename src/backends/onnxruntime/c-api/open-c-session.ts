import type { ExecutionProvider } from '../../../config/inference.js'
import type { GraphOptimization } from '../../../repository/model-config.js'
import {
  checkOptions,
  type NativeOptions,
  nativeWish,
  ProviderOptionsError,
  replaysRuns,
} from '../native-options.js'
import { deviceOf, missingProviderReason } from '../providers.js'
import { CSession } from './c-session.js'
import { appendProvider, deviceMemory } from './device.js'
import { type OrtApi, ortApi } from './ort-api.js'

/** Settings of a session that every provider follows. */
export type SessionSettings = Readonly<{
  intraOpThreads: number
  interOpThreads: number
  graphOptimization: GraphOptimization
  parallelExecution?: boolean
  memoryArena?: boolean
  memoryPattern?: boolean
  /** By their whole key, `session.*`. */
  config: Readonly<Record<string, string>>
}>

/** Numbers of `GraphOptimizationLevel`. */
const levels: Readonly<Record<GraphOptimization, number>> = { disabled: 0, basic: 1, extended: 2, all: 99 }
const logErrors = 3
const parallel = 1

/**
 * Opens a model by the C API, which takes options that the binding for Node has no word for.
 *
 * @throws ProviderOptionsError where there is no C API here, naming what needs it; Error with what ONNX Runtime says
 */
export function openCSession(
  place: Readonly<{ model: string | Uint8Array; provider: ExecutionProvider; deviceId: number }>,
  settings: SessionSettings,
  options: NativeOptions,
): CSession {
  const { model, provider, deviceId } = place
  const api = ortApi()
  if (typeof api === 'string')
    throw new ProviderOptionsError(
      `${nativeWish(options, provider)} needs the C API of ONNX Runtime: ${api}`,
      '`npm install koffi` in the folder of Gantry, or leave the option out.',
    )
  const shrinkage = options.shrinkage?.[deviceOf(provider)]
  return CSession.open(api, {
    model,
    deviceId,
    prepare: (sessionOptions) => {
      applySettings(api, sessionOptions, settings)
      for (const each of appended(provider)) {
        const own = options.providerOptions?.[each] ?? {}
        checkOptions(own, each)
        appendProvider(api, sessionOptions, each, { device_id: String(deviceId), ...own })
      }
    },
    runConfig: shrinkage === undefined ? {} : { 'memory.enable_memory_arena_shrinkage': shrinkage },
    memory: deviceMemory(api, provider),
    replays: replaysRuns(options, provider),
  })
}

/** What TensorRT leaves runs on CUDA where that is there, and on the CPU else. */
function appended(provider: ExecutionProvider): readonly ExecutionProvider[] {
  return provider === 'tensorrt' && missingProviderReason('cuda') === undefined
    ? [provider, 'cuda']
    : [provider]
}

function applySettings(api: OrtApi, target: number, settings: SessionSettings): void {
  api.call('SetIntraOpNumThreads', target, settings.intraOpThreads)
  api.call('SetInterOpNumThreads', target, settings.interOpThreads)
  api.call('SetSessionGraphOptimizationLevel', target, levels[settings.graphOptimization])
  api.call('SetSessionLogSeverityLevel', target, logErrors)
  if (settings.parallelExecution === true) api.call('SetSessionExecutionMode', target, parallel)
  const { memoryArena, memoryPattern } = settings
  if (memoryArena !== undefined) api.call(memoryArena ? 'EnableCpuMemArena' : 'DisableCpuMemArena', target)
  if (memoryPattern !== undefined) api.call(memoryPattern ? 'EnableMemPattern' : 'DisableMemPattern', target)
  for (const [key, value] of Object.entries(settings.config))
    api.call('AddSessionConfigEntry', target, key, value)
}
