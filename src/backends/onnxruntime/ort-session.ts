import ort from './onnxruntime.js'
import type { ExecutionProvider } from '../../config/inference.js'
import { systemLimitIn, SystemLimitError } from '../../lifecycle/system-limit.js'
import { ModelInvalidError } from '../../repository/errors.js'
import type { GraphOptimization } from '../../repository/model-config.js'
import { DeviceFailedError, DeviceUnfitError } from '../../runtime/errors.js'
import { openCSession, type SessionSettings } from './c-api/open-c-session.js'
import { checkMemoryLimit } from './memory-limit.js'
import { modelRefusal } from './model-refusal.js'
import { providerFailure } from './provider-failure.js'
import { failuresOf, ProviderUnavailableError, type ProviderNote } from './provider-notes.js'
import { type NativeOptions, nativeWish, optionFault, ProviderOptionsError } from './native-options.js'
import { missingProviderReason, takesDevice } from './providers.js'
import type { OrtSession } from './session.js'
import { isUnfit } from './provider-reason.js'
import { isStickyFailure } from './sticky-failure.js'

/** Only worker threads import this file: a run blocks its thread. */

export type OrtSessionOptions = NativeOptions &
  Readonly<{
    path: string
    /** Gives the bytes of a model to open in place of the file. */
    altered?: () => Uint8Array
    /** Tried in this order. */
    providers: readonly ExecutionProvider[]
    /** GPU number, for cuda and tensorrt. */
    deviceId: number
    /** Threads of one run, on CPU. */
    intraOpThreads: number
    graphOptimization: GraphOptimization
    /** Threads between operators; 1 without it. They work only with `parallelExecution`. */
    interOpThreads?: number
    parallelExecution?: boolean
    memoryArena?: boolean
    memoryPattern?: boolean
    /** ONNX Runtime's own session settings by their whole key, `session.*`. */
    sessionConfig?: Readonly<Record<string, string>>
  }>

export type OpenedSession = Readonly<{
  session: OrtSession
  provider: ExecutionProvider
  /** Why each provider before it does not run. */
  notes: readonly ProviderNote[]
}>

/**
 * Opens a model on the first provider that takes it.
 *
 * @throws ProviderUnavailableError if none does; DeviceUnfitError if none ever will, for want of what the model computes with; ProviderOptionsError if an option of one cannot be followed, whatever comes behind it;
 *   ModelInvalidError if the CPU provider refuses the model itself, also where it is not among them; SystemLimitError if a limit of the system keeps it from being loaded.
 */
export async function openOrtSession(options: OrtSessionOptions): Promise<OpenedSession> {
  const notes: ProviderNote[] = []
  const failures: unknown[] = []
  for (const provider of options.providers) {
    const missing = missingProviderReason(provider)
    if (missing !== undefined) {
      notes.push({ provider, reason: missing, installed: false })
      continue
    }
    try {
      return { session: await openOn(provider, options), provider, notes }
    } catch (error) {
      const fault = faultOf(error, provider, options)
      if (fault !== undefined) throw fault
      const reason = providerFailure(error, provider, options.deviceId)
      const limit = provider === 'cpu' ? systemLimitIn(reason) : undefined
      if (limit !== undefined)
        throw new SystemLimitError(`ONNX Runtime cannot load ${options.path}`, limit, error)
      if (provider === 'cpu') throw refusedModel(options.path, reason, error)
      notes.push({ provider, reason, installed: true })
      failures.push(error)
    }
  }
  if (failures.length > 0 && failures.every((failure) => isUnfit(String(failure))))
    throw new DeviceUnfitError(failuresOf(notes).join('; '), failures[0])
  const refusal = await modelRefusal(failures, async () => {
    const session = await openOn('cpu', { ...options, graphOptimization: 'disabled' })
    await session.release()
  })
  if (refusal !== undefined) throw refusedModel(options.path, refusal.reason, refusal.cause)
  throw new ProviderUnavailableError(notes)
}

function refusedModel(path: string, reason: string, cause: unknown): ModelInvalidError {
  return new ModelInvalidError(
    `ONNX Runtime cannot load ${path}: ${reason}`,
    'Check the model with `gantry models inspect`; export it with an opset this version of ONNX Runtime knows.',
    cause,
  )
}

/**
 * What a run threw; of a GPU without C++ and the name of the host, since clients see it.
 *
 * @returns DeviceUnfitError where the GPU lacks what the model computes with, DeviceFailedError where no later run on it will do better in this
 *   process.
 */
export function runFailure(
  error: unknown,
  provider: ExecutionProvider,
  options: NativeOptions & Readonly<{ deviceId: number }>,
): unknown {
  if (provider === 'cpu') return error
  const reason = providerFailure(error, provider, options.deviceId)
  const text = error instanceof Error ? error.message : String(error)
  if (isUnfit(text)) return new DeviceUnfitError(reason, error)
  if (isStickyFailure(text)) return new DeviceFailedError(reason, error)
  return faultOf(error, provider, options) ?? new Error(reason, { cause: error })
}

/** Of an option that cannot be followed; undefined for any other error. */
function faultOf(
  error: unknown,
  provider: ExecutionProvider,
  options: NativeOptions,
): ProviderOptionsError | undefined {
  if (error instanceof ProviderOptionsError) return error
  return optionFault(error instanceof Error ? error.message : String(error), options, provider)
}

/** By the binding, or, where an option asks for more than that takes, by the C API. */
async function openOn(provider: ExecutionProvider, options: OrtSessionOptions): Promise<OrtSession> {
  const settings = settingsOf(options)
  const { path, altered, deviceId } = options
  await checkMemoryLimit(path, options, provider)
  const model = altered?.() ?? path
  if (nativeWish(options, provider) !== undefined)
    return openCSession({ model, provider, deviceId }, settings, options)
  const native = bindingOptions(settings, provider, deviceId)
  return typeof model === 'string'
    ? ort.InferenceSession.create(model, native)
    : ort.InferenceSession.create(model, native)
}

function settingsOf(options: OrtSessionOptions): SessionSettings {
  return {
    ...options,
    interOpThreads: options.interOpThreads ?? 1,
    // Threads that spin while they wait take the cores from the other instances: 153 against 82 CPU-ms per image.
    config: { 'session.intra_op.allow_spinning': '0', ...options.sessionConfig },
  }
}

function bindingOptions(
  settings: SessionSettings,
  provider: ExecutionProvider,
  deviceId: number,
): ort.InferenceSession.SessionOptions {
  const { memoryArena, memoryPattern } = settings
  return {
    executionProviders: [takesDevice(provider) ? { name: provider, deviceId } : provider],
    intraOpNumThreads: settings.intraOpThreads,
    interOpNumThreads: settings.interOpThreads,
    graphOptimizationLevel: settings.graphOptimization,
    logSeverityLevel: 3,
    ...(settings.parallelExecution === true ? { executionMode: 'parallel' as const } : {}),
    ...(memoryArena === undefined ? {} : { enableCpuMemArena: memoryArena }),
    ...(memoryPattern === undefined ? {} : { enableMemPattern: memoryPattern }),
    extra: settings.config,
  }
}
